#version 450
// Determinants, one each for an invocation: of matrices of up to 3 rows, and of those that are factored. Powers of two are kept
// apart from products that are far from 1: part of one may be more than the type holds, or less.
#include "matrix.glsl"
#include "powers.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint n; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer R { WORK r[]; };
#ifdef FACTORED
layout(set = 0, binding = 2, std430) readonly buffer Pivots { uint pivots[]; };
#endif

void scale(inout WORK x, inout int power) {
    int exponent = exponent_for(first_bits(extent_of(x)));
    if (abs(exponent) < MOST_EXPONENT / 2) return;
    x *= two_to(exponent);
    power -= exponent;
}

void take(inout WORK product, inout int power, WORK x) {
    scale(x, power);
    product = ROUNDED_PRODUCT(product, x);
    scale(product, power);
}

// The product times two to its power.
WORK whole(WORK product, int power) {
    power = clamp(power, -3 * MOST_EXPONENT, 3 * MOST_EXPONENT);
    while (power != 0) {
        int part = clamp(power, -MOST_EXPONENT, MOST_EXPONENT);
        product *= two_to(part);
        power -= part;
    }
    return product;
}

WORK term(uint first, uvec3 at) {
    WORK x = nxv_load(a, first + at.x), y = nxv_load(a, first + at.y), z = nxv_load(a, first + at.z);
    WORK two = ROUNDED_PRODUCT(x, y);
    // Else the product of two is 0, or may have been more than the type holds, or less.
    if (abs(exponent_for(first_bits(extent_of(two)))) < MOST_EXPONENT) return ROUNDED_PRODUCT(two, z);
    WORK product = ONE;
    int power = 0;
    take(product, power, x);
    take(product, power, y);
    take(product, power, z);
    return whole(product, power);
}

void main() {
    uint own = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (own >= count) return;
    uint first = own * n * n;
    precise WORK result = ONE;
#ifdef FACTORED
    bool odd = false, zero = false;
    int power = 0;
    for (uint k = 0; k < n; k++) {
        WORK x = nxv_load(a, first + k * (n + 1));
        zero = zero || x == WORK(0);
        odd = odd != (nxv_load(pivots, own * n + k) != k);
        take(result, power, x);
    }
    result = whole(result, power);
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
