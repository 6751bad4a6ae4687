#version 450
// Swaps rows as a block of columns did, in all other columns: one each for an invocation.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint start; uint tiles; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) readonly buffer Pivots { uint pivots[]; };

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / tiles;
    uint column = job % tiles * 64 + gl_LocalInvocationIndex;
    uint end = min(start + BLOCK, n);
    if (column >= n || (column >= start && column < end)) return;
    uint first = batch * n * n + column;
    for (uint k = start; k < end; k++) {
        uint pivot = nxv_load(pivots, batch * n + k);
        if (pivot == k) continue;
        WORK x = nxv_load(a, first + k * n);
        nxv_store(a, first + k * n, nxv_load(a, first + pivot * n));
        nxv_store(a, first + pivot * n, x);
    }
}
