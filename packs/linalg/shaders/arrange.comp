#version 450
// Columns in an order, each in one piece: as they are, or with SCALED of length 1, those of length 0 within rounding being 0.
// TURNED stores them as columns of rows.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint m; uint n; float precision_of_result; };
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) readonly buffer Order { uint order[]; };
layout(set = 0, binding = 2, std430) writeonly buffer To { WORK to[]; };
layout(set = 0, binding = 3, std430) readonly buffer S { WORK s[]; };
layout(set = 0, binding = 4, std430) readonly buffer Norms { WORK norms[]; };

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    uint matrix = at / m / n;
#ifdef TURNED
    uint place = at % n, i = at / n % m;
#else
    uint i = at % m, place = at / m % n;
#endif
    uint column = nxv_load(order, matrix * n + place);
    WORK x = nxv_load(from, (matrix * n + column) * m + i);
    WORK norm = nxv_load(norms, matrix);
#ifdef SCALED
    WORK length = nxv_load(s, matrix * n + place);
    WORK least = WORK(n) * WORK(precision_of_result) * nxv_load(s, matrix * n);
    x = norm == WORK(0) ? (i == place ? WORK(1) : WORK(0)) : length > least ? x / length : WORK(0);
#endif
    nxv_store(to, at, is_finite(norm) ? x : not_a_number());
}
