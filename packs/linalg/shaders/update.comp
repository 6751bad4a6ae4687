#version 450
// Takes the product of a block of columns and a block of rows from what is behind them: a workgroup has a tile of SIDE x SIDE,
// an invocation PACKS x PACKS squares of 4 x 4 of it. UPPER has what is before them, ALL every row, AFTER only columns behind
// the block, LOWER only tiles that reach the diagonal. FACTOR has a Cholesky factor of the first tile at once; FROM begins
// one: there is no product yet, and the elements are those of another matrix. CONJUGATED
// takes conjugates of the block of columns, FACTOR of that of rows.
#include "matrix.glsl"

const uint INVOCATIONS = LANES * LANES;

layout(local_size_x = INVOCATIONS) in;
layout(push_constant) uniform Push {
    uint n; uint jobs; uint start; uint count; uint down; uint across;
    uint a_row; uint a_column; uint a_batch;
    uint b_row; uint b_column; uint b_batch;
    uint x_row; uint x_column; uint x_batch;
};
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { WORK b[]; };
#ifdef FROM
layout(set = 0, binding = 2, std430) writeonly buffer X { WORK x[]; };
layout(set = 0, binding = 3, std430) readonly buffer From { WORK from[]; };
#define BEFORE(at) nxv_load(from, at)
#else
layout(set = 0, binding = 2, std430) buffer X { WORK x[]; };
#define BEFORE(at) nxv_load(x, at)
#endif

// A row or column of the tile lies in these fours: neighbours in memory are neighbouring invocations'.
#define FOUR(place) ((place) % LANES + LANES * ((place) / (4 * LANES)))
#define PART(place) ((place) / LANES % 4)
shared WORK4 left[DEPTH][SIDE / 4 + 1];
shared WORK4 right[DEPTH][SIDE / 4 + 1];

// What the invocation has of the tile: rows one by one, columns in fours.
WORK4 cells[4 * PACKS][PACKS];
uvec2 own;

#ifdef WORK_IS_COMPLEX
#define LESS_PRODUCT(cell, x, four) cell -= times(x, four)
#else
#define LESS_PRODUCT(cell, x, four) cell = fma(WORK4(-x), four, cell)
#endif

uvec2 place_of(uint i, uint j, uint part) { return own + LANES * uvec2(i, 4 * j + part); }

void multiply(uint batch, uint row, uint column, uint end) {
    uint depth = min(SIDE, n - start);
    for (uint first = 0; first < depth; first += DEPTH) {
        barrier(); // the steps before are used up
        UNROLL for (uint step = 0; step < DEPTH * SIDE; step += INVOCATIONS) {
            uint at = step + gl_LocalInvocationIndex;
            uvec2 by_row = uvec2(at / DEPTH, at % DEPTH), by_column = uvec2(at % SIDE, at / SIDE);
            uvec2 i = a_column == 1 ? by_row : by_column;
            bool is_in = row + i.x < end && first + i.y < depth;
            // A load without a condition does not wait for the one before.
            uvec2 at_a = min(uvec2(row, start + first) + i, uvec2(end, n) - 1);
            WORK value = nxv_load(a, batch * a_batch + at_a.x * a_row + at_a.y * a_column);
#ifdef CONJUGATED
            value = CONJUGATE(value);
#endif
            left[i.y][FOUR(i.x)][PART(i.x)] = is_in ? value : WORK(0);
            uvec2 j = b_column == 1 ? by_column : by_row;
            is_in = column + j.x < count && first + j.y < depth;
            uvec2 at_b = min(uvec2(start + first, column) + j.yx, uvec2(n, count) - 1);
            value = nxv_load(b, batch * b_batch + at_b.x * b_row + at_b.y * b_column);
#ifdef FACTOR
            value = CONJUGATE(value);
#endif
            right[j.y][FOUR(j.x)][PART(j.x)] = is_in ? value : WORK(0);
        }
        barrier(); // both operands are there
        for (uint k = 0; k < DEPTH; k++) {
            WORK4 rows[PACKS], columns[PACKS];
            [[unroll]] for (uint i = 0; i < PACKS; i++) rows[i] = left[k][own.x + LANES * i];
            [[unroll]] for (uint j = 0; j < PACKS; j++) columns[j] = right[k][own.y + LANES * j];
            [[unroll]] for (uint i = 0; i < 4 * PACKS; i++) {
                [[unroll]] for (uint j = 0; j < PACKS; j++) {
                    LESS_PRODUCT(cells[i][j], rows[i / 4][i % 4], columns[j]);
                }
            }
        }
    }
}

#ifdef FACTOR
shared WORK4 published[2][SIDE / 4];

REAL root(REAL x) { return x < REAL(0) ? not_a_number() : sqrt(x); }

// The Cholesky factor of the tile in registers, a column after another: those of invocations' element `slow` of a row.
void factor_columns(uint size, const uint slow) {
    for (uint lane = 0; lane < min(LANES, size - min(size, LANES * slow)); lane++) {
        uint k = lane + LANES * slow, turn = lane % 2;
        if (own.y == lane) {
            [[unroll]] for (uint i = slow / 4; i < PACKS; i++) {
                WORK4 rows;
                [[unroll]] for (uint part = 0; part < 4; part++) rows[part] = cells[4 * i + part][slow / 4][slow % 4];
                published[turn][own.x + LANES * i] = rows;
            }
        }
        barrier(); // the column is there, and what lies in the other half is used up
        REAL pivot = root(REAL_OF(published[turn][FOUR(k)][slow % 4]));
        REAL scale = REAL(1) / (pivot == REAL(0) ? REAL(TINY) : pivot);
        WORK4 rows[PACKS], columns[PACKS];
        [[unroll]] for (uint i = slow / 4; i < PACKS; i++) {
            rows[i] = published[turn][own.x + LANES * i] * scale;
            columns[i] = published[turn][own.y + LANES * i] * scale;
        }
        [[unroll]] for (uint j = slow; j < 4 * PACKS; j++) {
            if (j == slow && own.y <= lane) continue;
            [[unroll]] for (uint i = slow; i < 4 * PACKS; i++) {
                cells[i][j / 4][j % 4] -= TIMES(rows[i / 4][i % 4], CONJUGATE(columns[j / 4][j % 4]));
            }
        }
        if (own.y == lane) {
            [[unroll]] for (uint i = slow; i < 4 * PACKS; i++) {
                cells[i][slow / 4][slow % 4] = own.x == lane && i == slow ? OF_REAL(pivot) : rows[i / 4][i % 4];
            }
        }
    }
}

// The calls are spelled out, since a loop with barriers in it would keep the elements out of registers.
void factor(uint size) {
    factor_columns(size, 0);
    factor_columns(size, 1);
    factor_columns(size, 2);
    factor_columns(size, 3);
#if PACKS > 1
    factor_columns(size, 4);
    factor_columns(size, 5);
    factor_columns(size, 6);
    factor_columns(size, 7);
#endif
}
#endif

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / (down * across);
    uvec2 tile = uvec2(job / across % down, job % across);
    uint row = tile.x * SIDE;
    uint column = tile.y * SIDE;
#ifdef UPPER
    uint end = start;
#else
    uint end = n;
#endif
#if !defined(UPPER) && !defined(ALL) && !defined(FROM)
    row += start + SIDE;
#endif
#if defined(AFTER) && !defined(FROM)
    column += min(start + SIDE, n);
#endif
    if (row >= end || column >= count) return;
#if defined(LOWER) && !defined(FROM)
    if (column > row) return;
#endif
    own = uvec2(gl_LocalInvocationIndex / LANES, gl_LocalInvocationIndex % LANES);
    if (x_column != 1) own = own.yx;
    uint corner = batch * x_batch + row * x_row + column * x_column;
    [[unroll]] for (uint i = 0; i < 4 * PACKS; i++) {
        [[unroll]] for (uint j = 0; j < PACKS; j++) {
            [[unroll]] for (uint part = 0; part < 4; part++) {
                uvec2 at = place_of(i, j, part);
                bool is_in = row + at.x < end && column + at.y < count;
#ifdef LOWER
                is_in = is_in && column + at.y <= row + at.x;
#endif
                at = min(at, uvec2(end - 1 - row, count - 1 - column));
                WORK before = BEFORE(corner + at.x * x_row + at.y * x_column);
                cells[i][j][part] = is_in ? before : WORK(0);
            }
        }
    }
#ifndef FROM
    multiply(batch, row, column, end);
#endif
#ifdef FACTOR
    if (tile == uvec2(0)) factor(min(SIDE, end - row));
#endif
    [[unroll]] for (uint i = 0; i < 4 * PACKS; i++) {
        [[unroll]] for (uint j = 0; j < PACKS; j++) {
            [[unroll]] for (uint part = 0; part < 4; part++) {
                uvec2 at = place_of(i, j, part);
                if (row + at.x >= end || column + at.y >= count) continue;
#if defined(LOWER) && !defined(FROM)
                if (column + at.y > row + at.x) continue;
#endif
#ifdef FROM
                bool is_lower = column + at.y <= row + at.x;
                nxv_store(x, corner + at.x * x_row + at.y * x_column, is_lower ? cells[i][j][part] : WORK(0));
#else
                nxv_store(x, corner + at.x * x_row + at.y * x_column, cells[i][j][part]);
#endif
            }
        }
    }
}
