#version 450
// Lengths of orthogonal columns, a workgroup to one. With SIGNED both it and its rotations change sign where the first of these is
// negative.
#include "matrix.glsl"
#include "sums.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint n; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Lengths { WORK lengths[]; };

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    WORK part = WORK(0);
#ifdef SIGNED
    bool is_negative = nxv_load(v, job * n) < WORK(0);
#else
    bool is_negative = false;
#endif
    for (uint i = own; i < m; i += TILE) {
        WORK x = nxv_load(a, job * m + i);
        part += x * x;
        if (is_negative) nxv_store(a, job * m + i, -x);
    }
    WORK sum = total(part); // and everybody has looked at the first element
    if (own == 0) nxv_store(lengths, job, sqrt(sum));
    if (!is_negative) return;
    for (uint i = own; i < n; i += TILE) nxv_store(v, job * n + i, -nxv_load(v, job * n + i));
}
