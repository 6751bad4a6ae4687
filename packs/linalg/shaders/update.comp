#version 450
// Takes the product of a block of columns and a block of rows from what is behind them: tiles of BLOCK x BLOCK, of which an
// invocation has 4 x 4. UPPER has what is before them, AFTER only columns behind the block, LOWER only tiles that reach the
// diagonal.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
    uint n; uint jobs; uint start; uint count; uint down; uint across;
    uint a_row; uint a_column; uint a_batch;
    uint b_row; uint b_column;
    uint x_row; uint x_column; uint x_batch;
};
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer X { WORK x[]; };

shared WORK left[BLOCK][BLOCK];
shared WORK right[BLOCK][BLOCK];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / (down * across);
    uint row = job / across % down * BLOCK;
    uint column = job % across * BLOCK;
#ifdef UPPER
    uint end = start;
#else
    uint end = n;
    row += start + BLOCK;
#endif
#ifdef AFTER
    column += start + BLOCK;
#endif
    if (row >= end || column >= count) return;
#ifdef LOWER
    if (column > row) return;
#endif
    uint depth = min(BLOCK, n - start);
    for (uint at = gl_LocalInvocationIndex; at < BLOCK * BLOCK; at += 64) {
        uint slow = at / BLOCK, fast = at % BLOCK;
        uvec2 i = a_column == 1 ? uvec2(slow, fast) : uvec2(fast, slow);
        bool is_in = row + i.x < end && i.y < depth;
        left[i.y][i.x] =
            is_in ? nxv_load(a, batch * a_batch + (row + i.x) * a_row + (start + i.y) * a_column) : WORK(0);
        uvec2 j = b_column == 1 ? uvec2(slow, fast) : uvec2(fast, slow);
        is_in = column + j.y < count && j.x < depth;
        right[j.x][j.y] =
            is_in ? nxv_load(x, batch * x_batch + (start + j.x) * b_row + (column + j.y) * b_column) : WORK(0);
    }
    barrier(); // both tiles are there before they are used

    uvec2 own = uvec2(gl_LocalInvocationIndex / 8, gl_LocalInvocationIndex % 8);
    WORK sums[4][4];
    [[unroll]] for (uint i = 0; i < 4; i++) [[unroll]] for (uint j = 0; j < 4; j++) sums[i][j] = WORK(0);
    for (uint k = 0; k < depth; k++) {
        [[unroll]] for (uint i = 0; i < 4; i++) {
            [[unroll]] for (uint j = 0; j < 4; j++) sums[i][j] += left[k][own.x + 8 * i] * right[k][own.y + 8 * j];
        }
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint j = 0; j < 4; j++) {
            uvec2 at = uvec2(row, column) + own + 8 * uvec2(i, j);
            if (at.x >= end || at.y >= count) continue;
#ifdef LOWER
            if (at.y > at.x) continue;
#endif
            uint place = batch * x_batch + at.x * x_row + at.y * x_column;
            nxv_store(x, place, nxv_load(x, place) - sums[i][j]);
        }
    }
}
