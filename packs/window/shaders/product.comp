#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
// Filters by elements of the kernel, times those by positions, on matrix units: every subgroup loads its fragments straight from
// the packed operands, without shared memory and without a barrier. A subgroup owns FILTERS x POSITIONS results, a workgroup
// WARPS_M x WARPS_N subgroups.
#include "product.glsl"

void main() {
    if (!begin()) return;
    uint at = kernel_at();
    uint look = start * 4 + (LANE & 3);
    PLACE place = nxv_load(places, look);
    uvec4 rows[2][TILE_M];
#if WHOLE_PIECES
    uvec4 columns[TILE_N][2];
#define LOAD_COLUMN(j, from) \
    columns[j][0] = load_piece(bases[j][0], from); columns[j][1] = load_piece(bases[j][1], from);
#define LOAD_FIRST(j, a) LOAD_COLUMN(j, place)
#else
    uvec2 columns[TILE_N][2];
#define LOAD_COLUMN(j, from, part) \
    columns[j][0] = load_column(bases[j][0], from, part, 0); columns[j][1] = load_column(bases[j][1], from, part, 0);
#define LOAD_FIRST(j, a) LOAD_COLUMN(j, place, 0)
#endif
#define LOAD_ROW(w, part, a) rows[part][w] = load_rows(at + (part * TILE_M + w) * 32);
    EACH_N(LOAD_FIRST, 0)
    EACH_M(LOAD_ROW, 0, 0)
    EACH_M(LOAD_ROW, 1, 0)
    // Registers are loaded anew as soon as their last use is behind. Behind the last step the packed operands go on with what
    // nobody uses. If it may, NVIDIA's driver loads several steps ahead, which takes 255 registers for 4 x 2 fragments instead of 128:
    // few subgroups need that against latency, of many the registers hold twice as many.
#if MANY
    [[dont_unroll]]
#endif
    for (uint s = start; s < end; ++s) {
        look += 4;
        PLACE next = nxv_load(places, look);
        at += 64 * TILE_M;
        MATRIX_A a[TILE_M];
#define FRAGMENT(w, part, a_) a[w] = rows_of(rows[part][w]);
#define ADD(w, j, a_) sums[w][j] = MULTIPLY(a[w], b, sums[w][j]);
#define MULTIPLY_BY(j, first, second) \
        MATRIX_B b = columns_of(first, second); \
        EACH_M(ADD, j, 0)
#if WHOLE_PIECES
#define FIRST(j, a_) { \
        columns[j][0] = column_of(columns[j][0], place); \
        columns[j][1] = column_of(columns[j][1], place); \
        MULTIPLY_BY(j, columns[j][0].xy, columns[j][1].xy) \
    }
#define SECOND(j, a_) { \
        MULTIPLY_BY(j, columns[j][0].zw, columns[j][1].zw) \
        LOAD_COLUMN(j, next) \
    }
#else
#define FIRST(j, a_) { \
        MULTIPLY_BY(j, columns[j][0], columns[j][1]) \
        LOAD_COLUMN(j, place, 1) \
    }
#define SECOND(j, a_) { \
        MULTIPLY_BY(j, columns[j][0], columns[j][1]) \
        LOAD_COLUMN(j, next, 0) \
    }
#endif
        EACH_M(FRAGMENT, 0, 0)
        EACH_N(FIRST, 0)
        EACH_M(LOAD_ROW, 0, 0)
        EACH_M(FRAGMENT, 1, 0)
        EACH_N(SECOND, 0)
        EACH_M(LOAD_ROW, 1, 0)
        place = next;
    }
    store_sums();
}
