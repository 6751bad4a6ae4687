#version 450
// Columns in an order, each in one piece: as they are, or with SCALED of length 1. Where those of a matrix are too short for that, a
// QR is to find what they lack, and gets the columns as they are, and the unit matrix. TURNED stores them as columns of rows.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint m; uint n; };
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) readonly buffer Order { uint order[]; };
layout(set = 0, binding = 2, std430) writeonly buffer To { WORK to[]; };
layout(set = 0, binding = 3, std430) readonly buffer Norms { WORK norms[]; };
#ifdef SCALED
layout(set = 0, binding = 4, std430) readonly buffer Lengths { WORK lengths[]; };
layout(set = 0, binding = 5, std430) readonly buffer Lacking { uint lacking[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Sorted { WORK sorted[]; };
layout(set = 0, binding = 7, std430) writeonly buffer Unit { WORK unit[]; };
#endif

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
#ifdef SCALED
    if (nxv_load(lacking, matrix) != 0) {
        nxv_store(sorted, (matrix * n + place) * m + i, x);
        nxv_store(unit, (matrix * n + place) * m + i, i == place ? WORK(1) : WORK(0));
        return;
    }
    x /= nxv_load(lengths, matrix * n + column);
#endif
    nxv_store(to, at, is_finite(nxv_load(norms, matrix)) ? x : not_a_number());
}
