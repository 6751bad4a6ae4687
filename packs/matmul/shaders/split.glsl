// Sums of bf16 for wider floats, and what they cannot stand for.

// A power of two, as bits of a float.
#define POWER(exponent) (uint(127 + (exponent)) << 23)

// How far |x| is above `least`, both as bits: 0 where x is 0, and very far where it is smaller.
uint above(float x, uint least) {
    uint size = floatBitsToUint(x) & 0x7fffffffu;
    return size == 0 ? 0 : size - least;
}

// The nearest bf16 as the upper half of a word, ties to even.
uint nearest(float x) {
    uint bits = floatBitsToUint(x);
    return (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
}

// x as a sum of three bf16: 8 bits of it each, and the sign of what is left says whether a part is too large or too small.
// The sum is x. Parts of numbers from 2^-100 on are no denormals. What is smaller, what may grow to infinity within a sum, where the
// unit need not say so, and what is no number has NaN for its first part, so that all it goes into is NaN too.
uvec3 parts(float x) {
    if (above(x, POWER(-100)) >= POWER(60) - POWER(-100)) return uvec3(0x7fc0, 0, 0);
    uint first = nearest(x);
    float rest = x - uintBitsToFloat(first);
    uint second = nearest(rest);
    rest -= uintBitsToFloat(second);
    return uvec3(first, second, floatBitsToUint(rest)) >> 16;
}
