#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
// As product.comp, of f32 on units that multiply bf16: each operand is a sum of PLANES (parts.glsl).
#include "product.glsl"

void main() {
    if (!begin()) return;
    uint at = kernel_at();
    uint look = start * 4 + (LANE & 3);
    PLACE place = nxv_load(places, look);
    uvec4 rows[2][PLANES][TILE_M];
    uvec2 columns[2][PLANES][2];
#define LOAD_COLUMN(turn, p, j, from, part) \
    columns[turn][p][0] = load_column(bases[j][0], from, part, p); columns[turn][p][1] = load_column(bases[j][1], from, part, p);
#define LOAD_COLUMNS(turn, j, from, part) \
    LOAD_COLUMN(turn, 0, j, from, part) LOAD_COLUMN(turn, 1, j, from, part) THIRD(LOAD_COLUMN(turn, 2, j, from, part))
#define LOAD_ROW(w, part, p) rows[part][p][w] = load_rows(at + ((part * PLANES + p) * TILE_M + w) * 32);
#define LOAD_ROWS(part) EACH_M(LOAD_ROW, part, 0) EACH_M(LOAD_ROW, part, 1) THIRD(EACH_M(LOAD_ROW, part, 2))
    LOAD_COLUMNS(0, 0, place, 0)
    LOAD_ROWS(0)
    for (uint s = start; s < end; ++s) {
        look += 4;
        PLACE next = nxv_load(places, look);
#define ADD(w, j, part) ADD_PARTS(w, j, part)
        // The next columns are on their way while these are multiplied, and so are the rows of the next half.
#define COLUMN(j, turn, part) { \
        MATRIX_B x_first = columns_of(columns[turn][0][0], columns[turn][0][1]); \
        MATRIX_B x_second = columns_of(columns[turn][1][0], columns[turn][1][1]); \
        THIRD(MATRIX_B x_third = columns_of(columns[turn][2][0], columns[turn][2][1]);) \
        EACH_M(ADD, j, part) \
    }
#if TILE_N == 4
#define HALF(part, from, other) \
        LOAD_COLUMNS(1, 1, place, part) \
        COLUMN(0, 0, part) \
        LOAD_COLUMNS(0, 2, place, part) \
        COLUMN(1, 1, part) \
        LOAD_COLUMNS(1, 3, place, part) \
        COLUMN(2, 0, part) \
        LOAD_COLUMNS(0, 0, from, other) \
        COLUMN(3, 1, part)
#else
#define HALF(part, from, other) \
        LOAD_COLUMNS(1, 1, place, part) \
        COLUMN(0, 0, part) \
        LOAD_COLUMNS(0, 0, from, other) \
        COLUMN(1, 1, part)
#endif
        LOAD_ROWS(1)
        HALF(0, place, 1)
        at += 64 * TILE_M * PLANES;
        LOAD_ROWS(0)
        HALF(1, next, 0)
        place = next;
    }
    check_sums();
    store_sums();
}
