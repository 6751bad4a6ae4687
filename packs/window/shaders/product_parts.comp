#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
// As product.comp, of f32 on units that multiply bf16: each operand is a sum of three (parts.glsl). Products of parts p and q with
// p + q > 2 are left out: at most 2^-26 of the product, to either side.
//
// Matrix units cut sums off: those of 16 elements start at 0 and are added by the ALU, which rounds. Products of first parts have
// 16 bits, so that hardly anything of their sum is cut off, and what is of the others' counts for 2^-7 and 2^-14 as much.
#include "product.glsl"
#define COUNTS 5
#include "unfit.glsl"

const float SCALE = 0.0078125; // 2^-7

void check_sums() {
    bool unfit = false;
#define CHECK_ONE(w, j, e) unfit = unfit || is_unfit(ELEMENT(sums[w][j], e));
#define CHECK(w, j, a) \
    CHECK_ONE(w, j, 0) CHECK_ONE(w, j, 1) CHECK_ONE(w, j, 2) CHECK_ONE(w, j, 3) \
    CHECK_ONE(w, j, 4) CHECK_ONE(w, j, 5) CHECK_ONE(w, j, 6) CHECK_ONE(w, j, 7)
#define CHECK_COLUMN(j, a) EACH_M(CHECK, j, a)
    EACH_N(CHECK_COLUMN, 0)
    if (unfit) compute_anew();
}

void main() {
    if (!begin()) return;
    uint at = kernel_at();
    uint look = start * 4 + (LANE & 3);
    PLACE place = nxv_load(places, look);
    uvec4 rows[2][3][TILE_M];
    uvec2 columns[2][3][2];
#define LOAD_COLUMN(turn, p, j, from, part) \
    columns[turn][p][0] = load_column(bases[j][0], from, part, p); columns[turn][p][1] = load_column(bases[j][1], from, part, p);
#define LOAD_COLUMNS(turn, j, from, part) \
    LOAD_COLUMN(turn, 0, j, from, part) LOAD_COLUMN(turn, 1, j, from, part) LOAD_COLUMN(turn, 2, j, from, part)
#define LOAD_ROW(w, part, p) rows[part][p][w] = load_rows(at + ((part * PLANES + p) * TILE_M + w) * 32);
#define LOAD_ROWS(part) EACH_M(LOAD_ROW, part, 0) EACH_M(LOAD_ROW, part, 1) EACH_M(LOAD_ROW, part, 2)
    LOAD_COLUMNS(0, 0, place, 0)
    LOAD_ROWS(0)
    for (uint s = start; s < end; ++s) {
        look += 4;
        PLACE next = nxv_load(places, look);
#define ROUND(w, j, e) \
    ELEMENT(sums[w][j], e) += fma(fma(ELEMENT(third, e), SCALE, ELEMENT(second, e)), SCALE, ELEMENT(first, e));
#define ADD(w, j, part) { \
        MATRIX_A upper = rows_of(rows[part][0][w]), middle = rows_of(rows[part][1][w]), lower = rows_of(rows[part][2][w]); \
        MATRIX_C first = MULTIPLY(upper, x, MATRIX_C_ZERO); \
        MATRIX_C second = MULTIPLY(upper, y, MATRIX_C_ZERO); \
        MATRIX_C third = MULTIPLY(upper, z, MATRIX_C_ZERO); \
        second = MULTIPLY(middle, x, second); \
        third = MULTIPLY(middle, y, third); \
        third = MULTIPLY(lower, x, third); \
        ROUND(w, j, 0) ROUND(w, j, 1) ROUND(w, j, 2) ROUND(w, j, 3) ROUND(w, j, 4) ROUND(w, j, 5) ROUND(w, j, 6) ROUND(w, j, 7) \
    }
        // The next columns are on their way while these are multiplied, and so are the rows of the next half.
#define COLUMN(j, turn, part) { \
        MATRIX_B x = columns_of(columns[turn][0][0], columns[turn][0][1]); \
        MATRIX_B y = columns_of(columns[turn][1][0], columns[turn][1][1]); \
        MATRIX_B z = columns_of(columns[turn][2][0], columns[turn][2][1]); \
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
