#version 450
// Determinants, one each for an invocation: of matrices of up to 3 rows, and of those that are factored. Every step is
// rounded, as in Nx.LinAlg.determinant.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint n; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer R { WORK r[]; };
#ifdef FACTORED
layout(set = 0, binding = 2, std430) readonly buffer Pivots { uint pivots[]; };
#endif

WORK term(uint first, uvec3 at) {
    WORK two = ROUNDED_PRODUCT(nxv_load(a, first + at.x), nxv_load(a, first + at.y));
    return ROUNDED_PRODUCT(two, nxv_load(a, first + at.z));
}

void main() {
    uint own = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (own >= count) return;
    uint first = own * n * n;
    precise WORK result = ONE;
#ifdef FACTORED
    bool odd = false, zero = false;
    for (uint k = 0; k < n; k++) {
        WORK x = nxv_load(a, first + k * (n + 1));
        zero = zero || x == WORK(0);
        odd = odd != (nxv_load(pivots, own * n + k) != k);
        result = ROUNDED_PRODUCT(result, x);
    }
    result = zero ? WORK(0) : odd ? -result : result;
#else
    if (n == 1) {
        result = nxv_load(a, first);
    } else if (n == 2) {
        WORK minus = ROUNDED_PRODUCT(nxv_load(a, first + 1), nxv_load(a, first + 2));
        result = ROUNDED_PRODUCT(nxv_load(a, first), nxv_load(a, first + 3)) - minus;
    } else {
        result = term(first, uvec3(0, 4, 8)) + term(first, uvec3(1, 5, 6));
        result = result + term(first, uvec3(2, 3, 7));
        result = result - term(first, uvec3(2, 4, 6));
        result = result - term(first, uvec3(1, 3, 8));
        result = result - term(first, uvec3(0, 5, 7));
    }
#endif
    nxv_store(r, own, result);
}
