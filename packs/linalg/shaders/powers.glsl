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

// The largest exponent whose negative is one of normal numbers too.
#ifdef REAL_IS_F64
const int MOST_EXPONENT = 1022;
#else
const int MOST_EXPONENT = 126;
#endif

// Two to such an exponent, or to one more.
REAL two_to(int exponent) {
#ifdef REAL_IS_F64
    return packDouble2x32(uvec2(0, uint(exponent + 1023) << 20));
#else
    return uintBitsToFloat(uint(exponent + 127) << 23);
#endif
}

// The exponent of the power of two that makes about 1 of a number with such bits.
int exponent_for(uint bits) {
#ifdef REAL_IS_F64
    return max(1023 - int(bits >> 20), -MOST_EXPONENT);
#else
    return max(127 - int(bits >> 23), -MOST_EXPONENT);
#endif
}

REAL power_for(uint bits) { return two_to(exponent_for(bits)); }

// Between these a sum of squares is exact, and so are those of parts that count beside it.
#ifdef REAL_IS_F64
bool has_squares(REAL sum) { return sum >= 1.0e-250LF && sum <= 1.0e300LF; }
#else
bool has_squares(REAL sum) { return sum >= 1.0e-12 && sum <= 1.0e36; }
#endif
