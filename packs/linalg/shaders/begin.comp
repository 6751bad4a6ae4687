#version 450
// The start of Jacobi's rotations of columns, a workgroup to a matrix: `v` is the unit matrix, and the norm is known.
#include "matrix.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint rows; uint jobs; uint columns; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 3, std430) writeonly buffer States { uint states[]; };

shared WORK parts[TILE];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint count = rows * columns, first = job * count;
    WORK part = WORK(0);
    for (uint at = own; at < count; at += TILE) {
        WORK x = nxv_load(a, first + at);
        part += x * x;
    }
    for (uint at = own; at < columns * columns; at += TILE) {
        nxv_store(v, job * columns * columns + at, at / columns == at % columns ? WORK(1) : WORK(0));
    }
    parts[own] = part;
    barrier(); // every part is there
    if (own > 0) return;
    for (uint i = 1; i < TILE; i++) part += parts[i];
    nxv_store(norms, job, part);
    for (uint i = 0; i < MOST; i++) nxv_store(states, job * MOST + i, 0);
}
