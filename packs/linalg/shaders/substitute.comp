#version 450
// Solves with the triangle of a block on the diagonal, for right sides side by side: one each for an invocation. UPPER goes
// upwards, UNIT has ones on the diagonal, TINY stands for a 0 there, AFTER has the right sides behind the block in the matrix itself.
#include "matrix.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push {
    uint n; uint jobs; uint start; uint count; uint tiles;
    uint a_row; uint a_column; uint a_batch;
    uint x_row; uint x_column; uint x_batch;
};
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer X { WORK x[]; };

shared SUM block[BLOCK][BLOCK + 1];
shared SUM sides[BLOCK][TILE];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / tiles;
    uint tile = job % tiles;
    uint own = gl_LocalInvocationIndex;
    uint size = min(BLOCK, n - start);
    for (uint at = own; at < size * size; at += TILE) {
        uint i = at / size, j = at % size;
        block[i][j] = SUM(nxv_load(a, batch * a_batch + (start + i) * a_row + (start + j) * a_column));
    }
    uint side = tile * TILE + own;
#ifdef AFTER
    side += start + BLOCK;
#endif
    uint first = batch * x_batch + start * x_row + side * x_column;
    if (side < count) {
        for (uint i = 0; i < size; i++) sides[i][own] = SUM(nxv_load(x, first + i * x_row));
    }
    barrier(); // the block is there before it is used

#if !defined(UNIT)
    if (tile == 0 && own < size) nxv_fault(block[own][own] == SUM(0));
#endif
    if (side >= count) return;
    for (uint k = 0; k < size; k++) {
#ifdef UPPER
        uint i = size - 1 - k;
#else
        uint i = k;
#endif
        SUM sum = SUM(0);
        for (uint l = 0; l < k; l++) {
#ifdef UPPER
            uint j = size - 1 - l;
#else
            uint j = l;
#endif
            sum += block[i][j] * sides[j][own];
        }
        SUM value = sides[i][own] - sum;
#if defined(TINY)
        value /= block[i][i] == SUM(0) ? SUM(TINY) : block[i][i];
#elif !defined(UNIT)
        value /= block[i][i];
#endif
        sides[i][own] = value;
        nxv_store(x, first + i * x_row, WORK(value));
    }
}
