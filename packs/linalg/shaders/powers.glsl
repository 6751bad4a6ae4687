// Powers of two that bring numbers to where they have squares.

// The sum of the magnitudes of a number's parts.
#ifdef WORK_IS_COMPLEX
REAL extent_of(WORK x) { return abs(x.x) + abs(x.y); }
#else
REAL extent_of(WORK x) { return abs(x); }
#endif

// The first bits of a number that is not negative: they are in the order of the numbers.
uint first_bits(REAL x) {
#ifdef REAL_IS_F64
    return unpackDouble2x32(x).y;
#else
    return floatBitsToUint(x);
#endif
}

// The power of two that makes about 1 of a number with such bits.
REAL power_for(uint bits) {
#ifdef REAL_IS_F64
    return packDouble2x32(uvec2(0, uint(max(2046 - int(bits >> 20), 1)) << 20));
#else
    return uintBitsToFloat(uint(max(254 - int(bits >> 23), 1)) << 23);
#endif
}

// Between these a sum of squares is exact, and so are those of parts that count beside it.
#ifdef REAL_IS_F64
bool has_squares(REAL sum) { return sum >= 1.0e-250LF && sum <= 1.0e300LF; }
#else
bool has_squares(REAL sum) { return sum >= 1.0e-12 && sum <= 1.0e36; }
#endif
