#version 450
// Symmetric or Hermitian matrices, of which lower triangles are read, divided by a power of two so that the largest magnitude is about 1, a
// workgroup to a row. What is not finite becomes 0, and its scale NaN; that of 0 is 0. Reflectors `v` begin
// as 0.
#include "matrix.glsl"
#include "rotation.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { WORK to[]; };
layout(set = 0, binding = 2, std430) readonly buffer Lists { REAL lists[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Scales { REAL scales[]; };
layout(set = 0, binding = 4, std430) writeonly buffer V { WORK v[]; };

shared REAL parts[TILE];

REAL power_below(REAL x) {
#ifdef REAL_IS_F64
    REAL power = packDouble2x32(uvec2(0, unpackDouble2x32(x).y & 0x7ff00000u));
#else
    REAL power = uintBitsToFloat(floatBitsToUint(x) & 0x7f800000u);
#endif
    return power == REAL(0) ? REAL(1) : power;
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, row = job % n, matrix = job / n;
    REAL largest = REAL(0);
    for (uint i = own; i < n; i += TILE) {
        largest = max(largest, nxv_load(lists, PRODUCTS * total_rows + matrix * padded + i));
    }
    parts[own] = largest;
    barrier(); // every part is there
    for (uint i = 0; i < TILE; i++) largest = max(largest, parts[i]);
    bool defined = is_finite(largest);
    REAL scale = defined ? power_below(largest) : REAL(1);
    for (uint j = own; j < n; j += TILE) {
        WORK x = nxv_load(a, (matrix * n + max(row, j)) * n + min(row, j));
        if (row == j) x = OF_REAL(REAL_OF(x));
        if (row < j) x = CONJUGATE(x);
        nxv_store(to, job * n + j, defined ? x / scale : WORK(0));
        nxv_store(v, job * n + j, WORK(0));
    }
    if (row == 0 && own == 0) {
        nxv_store(scales, matrix, !defined ? not_a_number() : largest == REAL(0) ? largest : scale);
    }
}
