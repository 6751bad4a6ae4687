#version 450
// Applies a block of reflections to columns, a workgroup to one: those of the same matrix behind the block, or with LAST those of
// another one, from the last reflection to the first.
#include "matrix.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint start; uint n; uint last; uint count; uint v_batch; };
layout(set = 0, binding = 0, std430) readonly buffer V { WORK v[]; };
layout(set = 0, binding = 1, std430) readonly buffer Taus { WORK taus[]; };
layout(set = 0, binding = 2, std430) coherent buffer A { WORK a[]; };

shared WORK parts[TILE];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint batch = job / count;
    uint column = job % count;
    uint end = min(start + BLOCK, last);
#ifndef LAST
    column += end;
#endif
    if (column >= n) return;
    uint at = (batch * n + column) * m;
    for (uint step = start; step < end; step++) {
#ifdef LAST
        uint k = start + end - 1 - step;
#else
        uint k = step;
#endif
        uint reflector = batch * v_batch + k * m;
        WORK tau = nxv_load(taus, batch * last + k);
        if (tau == WORK(0)) continue;
        WORK part = own == 0 ? nxv_load(a, at + k) : WORK(0);
        for (uint i = k + 1 + own; i < m; i += TILE) part += nxv_load(v, reflector + i) * nxv_load(a, at + i);
        parts[own] = part;
        barrier(); // every part is there
        for (uint apart = TILE / 2; apart > 0; apart /= 2) {
            if (own < apart) parts[own] += parts[own + apart];
            barrier(); // half of the parts are left
        }
        WORK share = tau * parts[0];
        if (own == 0) nxv_store(a, at + k, nxv_load(a, at + k) - share);
        for (uint i = k + 1 + own; i < m; i += TILE) {
            nxv_store(a, at + i, nxv_load(a, at + i) - share * nxv_load(v, reflector + i));
        }
        meet(); // the column is up to date, and the sum is read
    }
}
