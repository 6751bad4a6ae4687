// What GLSL's own operators and functions do not give for every register type: int, uint, int64_t, uint64_t, float, double.
#ifndef FUNCTIONS_GLSL
#define FUNCTIONS_GLSL

#define POWER_BY_SQUARING(type) \
    type power(type base, type exponent) { \
        type result = type(1); \
        nxv_fault(exponent < type(0)); \
        for (; exponent > type(0); exponent >>= 1) { \
            if ((exponent & type(1)) != type(0)) result *= base; \
            base *= base; \
        } \
        return result; \
    }
#define INTEGER_FUNCTIONS(type) \
    POWER_BY_SQUARING(type) \
    type rounded(type x) { return x; } \
    type rounded_up(type x) { return x; } \
    type rounded_down(type x) { return x; } \
    type minimum(type a, type b) { return min(a, b); } \
    type maximum(type a, type b) { return max(a, b); } \
    type clipped(type x, type low, type high) { return min(max(x, low), high); } \
    bool is_nan(type x) { return false; } \
    bool is_infinite(type x) { return false; } \
    bool truth(type x) { return x != type(0); } \
    type negated(type x) { return type(0) - x; } \
    type shifted_left(type x, type amount, int bits) { \
        nxv_fault(amount < type(0)); \
        return amount >= type(0) && amount < type(bits) ? x << int(amount) : type(0); \
    } \
    type shifted_right(type x, type amount, int bits) { \
        nxv_fault(amount < type(0)); \
        bool inside = amount >= type(0) && amount < type(bits); \
        return x >> (inside ? int(amount) : bits - 1) >> int(!inside && x >= type(0)); \
    }
#define SIGNED_FUNCTIONS(type) \
    type absolute(type x) { return abs(x); } \
    type sign_of(type x) { return sign(x); } \
    type quotient(type a, type b) { \
        nxv_fault(b == type(0)); \
        return b == type(0) ? b : b == type(-1) ? type(0) - a : a / b; \
    } \
    type remainder(type a, type b) { \
        nxv_fault(b == type(0)); \
        return b == type(0) || b == type(-1) ? type(0) : a - a / b * b; \
    }
#define UNSIGNED_FUNCTIONS(type) \
    type absolute(type x) { return x; } \
    type sign_of(type x) { return min(x, type(1)); } \
    type quotient(type a, type b) { \
        nxv_fault(b == type(0)); \
        return b == type(0) ? b : a / b; \
    } \
    type remainder(type a, type b) { \
        nxv_fault(b == type(0)); \
        return b == type(0) ? b : a % b; \
    }

INTEGER_FUNCTIONS(int)
INTEGER_FUNCTIONS(uint)
SIGNED_FUNCTIONS(int)
UNSIGNED_FUNCTIONS(uint)
#ifdef NXV_HAS_INT64
INTEGER_FUNCTIONS(int64_t)
INTEGER_FUNCTIONS(uint64_t)
SIGNED_FUNCTIONS(int64_t)
UNSIGNED_FUNCTIONS(uint64_t)
#endif

// Bit counts see the value's own width: narrow integers are sign-extended in registers.
uint own_bits(uint x, int bits) { return bits == 32 ? x : x & ((1u << bits) - 1u); }
int leading_zeros(uint x, int bits) { return bits - 1 - findMSB(own_bits(x, bits)); }
int leading_zeros(int x, int bits) { return leading_zeros(uint(x), bits); }
int ones(uint x, int bits) { return bitCount(own_bits(x, bits)); }
int ones(int x, int bits) { return ones(uint(x), bits); }
#ifdef NXV_HAS_INT64
int leading_zeros(uint64_t x, int bits) {
    uint high = uint(x >> 32);
    return high == 0u ? 63 - findMSB(uint(x)) : 31 - findMSB(high);
}
int leading_zeros(int64_t x, int bits) { return leading_zeros(uint64_t(x), bits); }
int ones(uint64_t x, int bits) { return bitCount(uint(x)) + bitCount(uint(x >> 32)); }
int ones(int64_t x, int bits) { return ones(uint64_t(x), bits); }
#endif

// Signs and infinities are told from the bits, so that drivers which flush denormals keep them here.
float absolute(float x) { return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu); }
float negated(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u); }
bool is_nan(float x) { return nxv_is_nan(x); }
bool is_infinite(float x) { return floatBitsToUint(absolute(x)) == 0x7f800000u; }
bool truth(float x) { return floatBitsToUint(absolute(x)) != 0u; }
bool truth(vec2 z) { return truth(z.x) || truth(z.y); }
bool negative(float x) { return floatBitsToInt(x) < 0; }
#ifdef NXV_HAS_FP64
double absolute(double x) { return packDouble2x32(unpackDouble2x32(x) & uvec2(0xffffffffu, 0x7fffffffu)); }
double negated(double x) { return packDouble2x32(unpackDouble2x32(x) ^ uvec2(0u, 0x80000000u)); }
bool is_nan(double x) { return nxv_is_nan(x); }
bool is_infinite(double x) { return nxv_magnitude_bits(x) == 0x7ff0000000000000UL; }
bool truth(double x) { return nxv_magnitude_bits(x) != 0; }
bool truth(dvec2 z) { return truth(z.x) || truth(z.y); }
bool negative(double x) { return int(unpackDouble2x32(x).y) < 0; }
#endif

float rounded_up(float x) { return ceil(x); }
float rounded_down(float x) { return floor(x); }
#ifdef NXV_HAS_FP64
double rounded_up(double x) {
    double whole = nxv_trunc(x);
    return whole < x ? whole + 1.0LF : whole;
}
double rounded_down(double x) {
    double whole = nxv_trunc(x);
    return whole > x ? whole - 1.0LF : whole;
}
#endif

// round: adding 1/2 first would round the largest value below 1/2 up.
#define FLOAT_FUNCTIONS(type) \
    type sign_of(type x) { return is_nan(x) || !truth(x) ? x : negative(x) ? type(-1) : type(1); } \
    type rounded(type x) { \
        type whole = nxv_trunc(x); \
        return abs(x - whole) >= type(0.5) ? whole + sign_of(x) : whole; \
    } \
    type minimum(type a, type b) { return is_nan(a) ? a : is_nan(b) ? b : b < a ? b : a; } \
    type maximum(type a, type b) { return is_nan(a) ? a : is_nan(b) ? b : b > a ? b : a; } \
    type clipped(type x, type low, type high) { \
        type least = x < low ? low : x; \
        type inside = least > high ? high : least; \
        return is_nan(x) ? x : is_nan(low) ? low : is_nan(high) ? high : inside; \
    }

FLOAT_FUNCTIONS(float)
#ifdef NXV_HAS_FP64
FLOAT_FUNCTIONS(double)
#endif

// A real operand has the imaginary part 0. Compilers take 0 + y for y and 0 - y for -y, which have another sign where y is 0;
// so that is spelled out.
#define COMPLEX_SUMS(type, pair) \
    type beyond_zero(type y) { return truth(y) ? y : type(0); } \
    type sum_of(type a, type b) { return a + b; } \
    pair sum_of(pair a, pair b) { return a + b; } \
    pair sum_of(pair a, type b) { return pair(a.x + b, beyond_zero(a.y)); } \
    pair sum_of(type a, pair b) { return pair(a + b.x, beyond_zero(b.y)); } \
    type difference_of(type a, type b) { return a - b; } \
    pair difference_of(pair a, pair b) { return a - b; } \
    pair difference_of(pair a, type b) { return pair(a.x - b, a.y); } \
    pair difference_of(type a, pair b) { return pair(a - b.x, beyond_zero(negated(b.y))); }

COMPLEX_SUMS(float, vec2)
#ifdef NXV_HAS_FP64
COMPLEX_SUMS(double, dvec2)
#endif

#ifdef MATH_F32
float power(float a, float b) { return nxv_pow(a, b); }
float remainder(float a, float b) { return nxv_fmod(a, b); }
#endif
#ifdef MATH_F64
double power(double a, double b) { return nxv_pow(a, b); }
double remainder(double a, double b) { return nxv_fmod(a, b); }
#endif
#endif
