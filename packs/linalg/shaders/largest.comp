#version 450
// The largest magnitude in each row of lower triangles, infinity where something is not finite: a workgroup to a row.
#include "matrix.glsl"
#include "rotation.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Lists { REAL lists[]; };

shared REAL parts[TILE];

// The sum of the parts' magnitudes; on the diagonal the imaginary part does not count.
REAL parts_of(WORK x, bool is_diagonal) {
#ifdef WORK_IS_COMPLEX
    return abs(x.x) + (is_diagonal ? REAL(0) : abs(x.y));
#else
    return abs(x);
#endif
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, row = job % n;
    REAL largest = REAL(0);
    for (uint j = own; j <= row; j += TILE) {
        REAL x = parts_of(nxv_load(a, job * n + j), row == j);
        largest = is_finite(x) ? max(largest, x) : REAL(uintBitsToFloat(0x7f800000u));
    }
    parts[own] = largest;
    barrier(); // every part is there
    if (own > 0) return;
    for (uint i = 1; i < TILE; i++) largest = max(largest, parts[i]);
    nxv_store(lists, PRODUCTS * total_rows + job / n * padded + row, largest);
}
