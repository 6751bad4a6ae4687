// Operands whose values no common type holds: u64 with s64, and wide integers with floats. Results are those of exact
// arithmetic; order(a, b) is -1, 0 or 1 as a is less than, equal to or greater than b, and NaN where b or a is.
#ifndef MIXED_GLSL
#define MIXED_GLSL

#define ORDER_OF_FLOAT(type, floating, least, end) \
    float order(type n, floating x) { \
        if (is_nan(x)) return uintBitsToFloat(0x7fc00000u); \
        if (x < least) return 1.0; \
        if (x >= end) return -1.0; \
        type whole = type(x); \
        if (n != whole) return n < whole ? -1.0 : 1.0; \
        bool more = whole == type(0) ? truth(x) : x != nxv_trunc(x); \
        return !more ? 0.0 : negative(x) ? 1.0 : -1.0; \
    } \
    float order(floating x, type n) { return -order(n, x); }

float order(float a, float b) { return a == b ? 0.0 : a < b ? -1.0 : a > b ? 1.0 : uintBitsToFloat(0x7fc00000u); }
ORDER_OF_FLOAT(int, float, -2147483648.0, 2147483648.0)
ORDER_OF_FLOAT(uint, float, 0.0, 4294967296.0)
#ifdef NXV_HAS_INT64
ORDER_OF_FLOAT(int64_t, float, -9223372036854775808.0, 9223372036854775808.0)
ORDER_OF_FLOAT(uint64_t, float, 0.0, 18446744073709551616.0)
#ifdef NXV_HAS_FP64
ORDER_OF_FLOAT(int64_t, double, -9223372036854775808.0LF, 9223372036854775808.0LF)
ORDER_OF_FLOAT(uint64_t, double, 0.0LF, 18446744073709551616.0LF)
#endif

#ifdef NXV_HAS_FP64
float order(double a, float b) { return a == nxv_to_f64(b) ? 0.0 : uintBitsToFloat(0x7fc00000u); }
#endif
float order(uint64_t a, uint64_t b) { return a == b ? 0.0 : a < b ? -1.0 : 1.0; }
float order(int64_t a, int64_t b) { return a == b ? 0.0 : a < b ? -1.0 : 1.0; }
float order(uint64_t a, int64_t b) { return b < 0L ? 1.0 : order(a, uint64_t(b)); }
float order(int64_t a, uint64_t b) { return -order(b, a); }

// x with the sign of `sign`. With `sign < 0 ? 0 - x : x` in its place NVIDIA's driver 580 makes (2^64 - 1) / -2^15 -2 where the
// divisor is loaded from 16 bits.
uint64_t with_sign(uint64_t x, int64_t sign) {
    uint64_t mask = uint64_t(sign >> 63);
    return (x ^ mask) - mask;
}
// With a word that is 0, which no compiler knows: the same driver has -128 leave 713219065361946032 of 713219065361946288 where
// it is loaded from 8 bits.
uint64_t magnitude(int64_t x) { return with_sign(uint64_t(x), x) ^ uint64_t(gl_NumWorkGroups.x >> 31); }

// Each result wraps to s64 as its exact value does.
#define MIXED_FUNCTIONS(a_type, b_type) \
    int64_t minimum(a_type a, b_type b) { return order(a, b) < 0.0 ? int64_t(a) : int64_t(b); } \
    int64_t maximum(a_type a, b_type b) { return order(a, b) > 0.0 ? int64_t(a) : int64_t(b); }
MIXED_FUNCTIONS(uint64_t, int64_t)
MIXED_FUNCTIONS(int64_t, uint64_t)

uint64_t quotient(uint64_t a, int64_t b) { return with_sign(quotient(a, magnitude(b)), b); }
uint64_t quotient(int64_t a, uint64_t b) { return with_sign(quotient(magnitude(a), b), a); }
uint64_t remainder(uint64_t a, int64_t b) { return remainder(a, magnitude(b)); }
uint64_t remainder(int64_t a, uint64_t b) { return with_sign(remainder(magnitude(a), b), a); }

// A power wraps, so its base may; the exponent is what it is.
uint64_t power(uint64_t base, int64_t exponent) {
    nxv_fault(exponent < 0L);
    return exponent < 0L ? 1UL : power(base, uint64_t(exponent));
}
uint64_t power(int64_t base, uint64_t exponent) { return power(uint64_t(base), exponent); }

uint64_t shifted_left(uint64_t x, int64_t amount, int bits) {
    nxv_fault(amount < 0L);
    return shifted_left(x, uint64_t(amount), bits);
}
uint64_t shifted_left(int64_t x, uint64_t amount, int bits) { return shifted_left(uint64_t(x), amount, bits); }
uint64_t shifted_right(uint64_t x, int64_t amount, int bits) {
    nxv_fault(amount < 0L);
    return shifted_right(x, uint64_t(amount), bits);
}
int64_t shifted_right(int64_t x, uint64_t amount, int bits) {
    return shifted_right(x, int64_t(min(amount, uint64_t(bits))), bits);
}

#define MIXED_CLIP(x_type, low_type, high_type) \
    int64_t clipped(x_type x, low_type low, high_type high) { \
        if (order(x, low) > 0.0) return order(x, high) < 0.0 ? int64_t(x) : int64_t(high); \
        return order(low, high) < 0.0 ? int64_t(low) : int64_t(high); \
    }
MIXED_CLIP(uint64_t, int64_t, int64_t)
MIXED_CLIP(int64_t, uint64_t, int64_t)
MIXED_CLIP(int64_t, int64_t, uint64_t)
MIXED_CLIP(uint64_t, uint64_t, int64_t)
MIXED_CLIP(uint64_t, int64_t, uint64_t)
MIXED_CLIP(int64_t, uint64_t, uint64_t)
#endif

// Complex numbers have no order: 0 where they are equal, else NaN.
#define EQUAL_TO_COMPLEX(type) \
    float order(type a, vec2 b) { return truth(b.y) ? uintBitsToFloat(0x7fc00000u) : order(a, b.x); } \
    float order(vec2 a, type b) { return order(b, a); }
EQUAL_TO_COMPLEX(float)
EQUAL_TO_COMPLEX(int)
EQUAL_TO_COMPLEX(uint)
#ifdef NXV_HAS_INT64
EQUAL_TO_COMPLEX(int64_t)
EQUAL_TO_COMPLEX(uint64_t)
#endif
#ifdef NXV_HAS_FP64
EQUAL_TO_COMPLEX(double)
#define EQUAL_TO_WIDE_COMPLEX(type, exact) \
    float order(type a, dvec2 b) { return truth(b.y) || order(exact(a), b.x) != 0.0 ? uintBitsToFloat(0x7fc00000u) : 0.0; } \
    float order(dvec2 a, type b) { return order(b, a); }
float order(double a, double b) { return a == b ? 0.0 : uintBitsToFloat(0x7fc00000u); }
EQUAL_TO_WIDE_COMPLEX(float, nxv_to_f64)
EQUAL_TO_WIDE_COMPLEX(int, double)
EQUAL_TO_WIDE_COMPLEX(uint, double)
EQUAL_TO_WIDE_COMPLEX(int64_t, int64_t)
EQUAL_TO_WIDE_COMPLEX(uint64_t, uint64_t)
EQUAL_TO_WIDE_COMPLEX(double, double)
#endif
#endif
