#version 450
// The order of rows as a matrix, and both triangles apart. With UPPER_ONLY the upper one is in its place, but for what is below its
// diagonal.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint n; };
layout(set = 0, binding = 0, std430) readonly buffer Rows { uint row_of[]; };
layout(set = 0, binding = 1, std430) writeonly buffer P { WORK p[]; };
layout(set = 0, binding = 2, std430) writeonly buffer U { WORK u[]; };
#ifndef UPPER_ONLY
layout(set = 0, binding = 3, std430) writeonly buffer L { WORK l[]; };
layout(set = 0, binding = 4, std430) readonly buffer A { WORK a[]; };
#endif

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    uint j = at % n, i = at / n % n, batch = at / n / n;
    nxv_store(p, at, nxv_load(row_of, batch * n + j) == i ? ONE : WORK(0));
#ifdef UPPER_ONLY
    if (i > j) nxv_store(u, at, WORK(0));
#else
    WORK x = nxv_load(a, at);
    nxv_store(l, at, i > j ? x : i == j ? ONE : WORK(0));
    nxv_store(u, at, i <= j ? x : WORK(0));
#endif
}
