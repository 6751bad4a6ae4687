// Element types: extensions, 16-bit float conversion, and casts between register types.
// A shader includes this file right after #version; the NXV_NEEDS_* switches come with the operand defines.
#ifndef NXV_DTYPE_GLSL
#define NXV_DTYPE_GLSL

#extension GL_EXT_control_flow_attributes : require
#ifdef NXV_NEEDS_INT8
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#ifdef NXV_NEEDS_INT16
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#endif
#if defined(NXV_NEEDS_INT64) || defined(NXV_NEEDS_FP64)
#define NXV_HAS_INT64 1
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#ifdef NXV_NEEDS_FP64
#define NXV_HAS_FP64 1
#endif

#ifdef NXV_NEEDS_INT16
float nxv_load_bf16(uint16_t x) {
    return uintBitsToFloat(uint(x) << 16);
}

// Rounded to nearest, ties to even, in the upper half; a NaN stays one. On a device where isnan() tells them apart, a shader may
// define NXV_NATIVE_NAN: that is a comparison less, and NaN is the canonical one then.
uint nxv_upper_bf16(float x) {
    uint bits = floatBitsToUint(x);
    uint rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
#ifdef NXV_NATIVE_NAN
    return isnan(x) ? 0x7fc00000u : rounded;
#else
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;
#endif
}

uint16_t nxv_store_bf16(float x) {
    return uint16_t(nxv_upper_bf16(x) >> 16);
}

// What is left of x there.
float nxv_rounded_bf16(float x) {
    return uintBitsToFloat(nxv_upper_bf16(x) & 0xffff0000u);
}

// On a device whose conversions keep denormals, and round to nearest, ties to even, a shader may define NXV_NATIVE_HALF; Vulkan
// promises it of none.
#ifdef NXV_NATIVE_HALF
float nxv_load_f16(uint16_t x) {
    return unpackHalf2x16(uint(x)).x;
}

uint16_t nxv_store_f16(float x) {
    return uint16_t(packHalf2x16(vec2(x, 0.0)));
}
#else
float nxv_load_f16(uint16_t x) {
    uint sign = (uint(x) & 0x8000u) << 16;
    uint magnitude = uint(x) & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        return uintBitsToFloat(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    }
    if (magnitude < 0x400u) {
        float tiny = float(magnitude) * 5.9604644775390625e-8; // 2^-24, exact
        return uintBitsToFloat(floatBitsToUint(tiny) | sign);
    }
    return uintBitsToFloat(sign | ((magnitude << 13) + 0x38000000u));
}

// Round to nearest, ties to even, from the bits: a driver may round packHalf2x16 either way.
uint16_t nxv_store_f16(float x) {
    uint bits = floatBitsToUint(x);
    uint sign = (bits >> 16) & 0x8000u;
    uint magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00u); // 65520 and above
    if (magnitude < 0x38800000u) {                                 // below 2^-14: subnormal
        int shift = 126 - int(magnitude >> 23);
        if (shift > 24) return uint16_t(sign);
        uint mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        uint kept = mantissa >> shift;
        uint rest = mantissa & ((1u << shift) - 1u);
        uint half_way = 1u << (shift - 1);
        kept += uint(rest > half_way || (rest == half_way && (kept & 1u) == 1u));
        return uint16_t(sign | kept);
    }
    uint rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return uint16_t(sign | ((rounded - 0x38000000u) >> 13));
}
#endif
#endif

#ifdef NXV_NEEDS_INT8
// The code of a float's magnitude, given by its bits, in a format of `kept` bits after the point whose smallest normal
// number is 2^lowest. Rounds to nearest, ties to even; there is no bound above.
uint nxv_narrowed(uint magnitude, int kept, int lowest) {
    int drop = 23 - kept;
    int below = lowest - (int(magnitude >> 23) - 127);
    if (below > 0) {
        int shift = drop + below;
        if (shift > 24) return 0u;
        uint mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        uint code = mantissa >> shift;
        uint rest = mantissa & ((1u << shift) - 1u);
        uint half_way = 1u << (shift - 1);
        return code + uint(rest > half_way || (rest == half_way && (code & 1u) == 1u));
    }
    uint rounded = magnitude + ((1u << (drop - 1)) - 1u) + ((magnitude >> drop) & 1u);
    return (rounded - (uint(lowest + 126) << 23)) >> drop;
}

// E5M2, the upper half of an f16.
float nxv_load_f8(uint8_t x) {
    uint sign = (uint(x) & 0x80u) << 24;
    uint magnitude = uint(x) & 0x7fu;
    if (magnitude >= 0x7cu) return uintBitsToFloat(sign | 0x7f800000u | ((magnitude & 0x3u) << 21));
    if (magnitude < 0x4u) return uintBitsToFloat(sign | floatBitsToUint(float(magnitude) * 1.52587890625e-5)); // 2^-16
    return uintBitsToFloat(sign | ((magnitude << 21) + 0x38000000u));
}

uint8_t nxv_store_f8(float x) {
    uint bits = floatBitsToUint(x);
    uint sign = (bits >> 24) & 0x80u;
    uint magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return uint8_t(sign | 0x7eu);
    return uint8_t(sign | min(nxv_narrowed(magnitude, 2, -14), 0x7cu));
}

// E4M3 without infinities: what is too large becomes the largest number, 448.
float nxv_load_f8_e4m3fn(uint8_t x) {
    uint sign = (uint(x) & 0x80u) << 24;
    uint magnitude = uint(x) & 0x7fu;
    if (magnitude == 0x7fu) return uintBitsToFloat(sign | 0x7fc00000u);
    if (magnitude < 0x8u) return uintBitsToFloat(sign | floatBitsToUint(float(magnitude) * 0.001953125)); // 2^-9
    return uintBitsToFloat(sign | ((magnitude << 20) + 0x3c000000u));
}

uint8_t nxv_store_f8_e4m3fn(float x) {
    uint bits = floatBitsToUint(x);
    uint sign = (bits >> 24) & 0x80u;
    uint magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return uint8_t(sign | 0x7fu);
    return uint8_t(sign | min(nxv_narrowed(magnitude, 3, -6), 0x7eu));
}
#endif

// NaN is told from the bits: drivers may assume that it does not occur.
bool nxv_is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
#ifdef NXV_HAS_FP64
uint64_t nxv_magnitude_bits(double x) { return packUint2x32(unpackDouble2x32(x)) & 0x7fffffffffffffffUL; }
bool nxv_is_nan(double x) { return nxv_magnitude_bits(x) > 0x7ff0000000000000UL; }
#endif

float nxv_trunc(float x) { return trunc(x); }
#ifdef NXV_HAS_FP64
// The bits of the fraction are cleared here: lavapipe's trunc, floor and ceil take doubles beyond 2^24 for whole where the
// processor has no instruction for vectors of that many.
double nxv_trunc(double x) {
    uvec2 bits = unpackDouble2x32(x);
    int exponent = int(bits.y >> 20 & 0x7ffu) - 1023;
    if (exponent < 0) return packDouble2x32(bits & uvec2(0u, 0x80000000u));
    if (exponent >= 52) return x;
    uvec2 fraction = exponent < 20 ? uvec2(0xffffffffu, 0xfffffu >> exponent) : uvec2(0xffffffffu >> exponent - 20, 0u);
    return packDouble2x32(bits & ~fraction);
}
#endif

// nxv_to_{type}(x): casts between register types with the semantics of as_type. Integers wrap to the type's width;
// a float is truncated, out of range it gives the nearest bound, and NaN gives 0. `end` is the first float too large.
#define NXV_FLOAT_TO_INTEGER(type, x, least, end, most) \
    (nxv_is_nan(x) ? type(0) : x <= least ? type(least) : x >= end ? most : type(x))
#define NXV_INTEGER_CASTS(name, type, wrap, least, end, most) \
    type name(bool x) { return type(x); } \
    type name(int x) { return wrap(type(x)); } \
    type name(uint x) { return wrap(type(x)); } \
    type name(float x) { return NXV_FLOAT_TO_INTEGER(type, x, least, end, most); }
#define NXV_INTEGER_CASTS_OF_INT64(name, type, wrap) \
    type name(int64_t x) { return wrap(type(x)); } \
    type name(uint64_t x) { return wrap(type(x)); }
#define NXV_INTEGER_CASTS_OF_FP64(name, type, wrap, least, end, most) \
    type name(double x) { return NXV_FLOAT_TO_INTEGER(type, x, least, end, most); }

#define NXV_WRAP_NOT(x) x
#define NXV_WRAP_U2(x) ((x) & 0x3u)
#define NXV_WRAP_U4(x) ((x) & 0xfu)
#define NXV_WRAP_U8(x) ((x) & 0xffu)
#define NXV_WRAP_U16(x) ((x) & 0xffffu)
#define NXV_WRAP_S2(x) bitfieldExtract(x, 0, 2)
#define NXV_WRAP_S4(x) bitfieldExtract(x, 0, 4)
#define NXV_WRAP_S8(x) bitfieldExtract(x, 0, 8)
#define NXV_WRAP_S16(x) bitfieldExtract(x, 0, 16)

NXV_INTEGER_CASTS(nxv_to_u8, uint, NXV_WRAP_U8, 0.0, 256.0, 255u)
NXV_INTEGER_CASTS(nxv_to_u16, uint, NXV_WRAP_U16, 0.0, 65536.0, 65535u)
NXV_INTEGER_CASTS(nxv_to_u32, uint, NXV_WRAP_NOT, 0.0, 4294967296.0, 0xffffffffu)
NXV_INTEGER_CASTS(nxv_to_s8, int, NXV_WRAP_S8, -128.0, 128.0, 127)
NXV_INTEGER_CASTS(nxv_to_s16, int, NXV_WRAP_S16, -32768.0, 32768.0, 32767)
NXV_INTEGER_CASTS(nxv_to_s32, int, NXV_WRAP_NOT, -2147483648.0, 2147483648.0, 0x7fffffff)
#ifdef NXV_NEEDS_INT8
// A byte in memory holds nothing but the value: types of fewer bits are zero- or sign-extended.
NXV_INTEGER_CASTS(nxv_to_u2, uint, NXV_WRAP_U2, 0.0, 4.0, 3u)
NXV_INTEGER_CASTS(nxv_to_u4, uint, NXV_WRAP_U4, 0.0, 16.0, 15u)
NXV_INTEGER_CASTS(nxv_to_s2, int, NXV_WRAP_S2, -2.0, 2.0, 1)
NXV_INTEGER_CASTS(nxv_to_s4, int, NXV_WRAP_S4, -8.0, 8.0, 7)
uint8_t nxv_store_u2(uint x) { return uint8_t(NXV_WRAP_U2(x)); }
uint8_t nxv_store_u4(uint x) { return uint8_t(NXV_WRAP_U4(x)); }
int8_t nxv_store_s2(int x) { return int8_t(NXV_WRAP_S2(x)); }
int8_t nxv_store_s4(int x) { return int8_t(NXV_WRAP_S4(x)); }
#endif

// Drops the bits of x below the 24 highest, but for a 1 in the lowest kept one if any of them was set. The float of
// the result rounds to any shorter format as x itself would ("round to odd").
uint nxv_round_to_odd(uint x) {
    int shift = max(findMSB(x) - 23, 0);
    uint lost = x & ((1u << shift) - 1u);
    return (x - lost) | (uint(lost != 0u) << shift);
}

float nxv_to_f32(bool x) { return float(x); }
float nxv_to_f32(int x) { return float(x); }
float nxv_to_f32(uint x) { return float(x); }
float nxv_to_f32(float x) { return x; }
float nxv_to_f16(bool x) { return float(x); }
float nxv_to_f16(int x) { return float(x); }
float nxv_to_f16(uint x) { return float(x); }
float nxv_to_f16(float x) { return x; }
#ifdef NXV_NEEDS_INT8
#define NXV_F8_CASTS(type) \
    float nxv_to_f8(type x) { return nxv_to_f16(x); } \
    float nxv_to_f8_e4m3fn(type x) { return nxv_to_f16(x); }
NXV_F8_CASTS(bool)
NXV_F8_CASTS(int)
NXV_F8_CASTS(uint)
NXV_F8_CASTS(float)
#endif
float nxv_to_bf16(bool x) { return float(x); }
float nxv_to_bf16(int x) { return float(sign(x)) * float(nxv_round_to_odd(uint(abs(x)))); }
float nxv_to_bf16(uint x) { return float(nxv_round_to_odd(x)); }
float nxv_to_bf16(float x) { return x; }

#ifdef NXV_HAS_INT64
NXV_INTEGER_CASTS(nxv_to_u64, uint64_t, NXV_WRAP_NOT, 0.0, 18446744073709551616.0, 0xffffffffffffffffUL)
NXV_INTEGER_CASTS(nxv_to_s64, int64_t, NXV_WRAP_NOT, -9223372036854775808.0, 9223372036854775808.0, 0x7fffffffffffffffL)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_u8, uint, NXV_WRAP_U8)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_u16, uint, NXV_WRAP_U16)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_u32, uint, NXV_WRAP_NOT)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_u64, uint64_t, NXV_WRAP_NOT)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_s8, int, NXV_WRAP_S8)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_s16, int, NXV_WRAP_S16)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_s32, int, NXV_WRAP_NOT)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_s64, int64_t, NXV_WRAP_NOT)
#ifdef NXV_NEEDS_INT8
NXV_INTEGER_CASTS_OF_INT64(nxv_to_u2, uint, NXV_WRAP_U2)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_u4, uint, NXV_WRAP_U4)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_s2, int, NXV_WRAP_S2)
NXV_INTEGER_CASTS_OF_INT64(nxv_to_s4, int, NXV_WRAP_S4)
#endif

// The 32 highest bits of x from its first 1 on, with the lower ones as sticky bit; x is about the result * 2^shift.
uint nxv_top(uint64_t x, out int shift) {
    shift = findMSB(uint(x >> 32)) + 1;
    uint lost = uint(x) & (shift == 32 ? 0xffffffffu : (1u << shift) - 1u);
    return uint(x >> shift) | uint(lost != 0u);
}

float nxv_to_f32(uint64_t x) {
    int shift;
    float top = float(nxv_top(x, shift));
    return ldexp(top, shift);
}

float nxv_to_f32(int64_t x) {
    return x < 0 ? -nxv_to_f32(uint64_t(-x)) : nxv_to_f32(uint64_t(x));
}

float nxv_to_f16(uint64_t x) { return nxv_to_f32(x); }
float nxv_to_f16(int64_t x) { return nxv_to_f32(x); }
#ifdef NXV_NEEDS_INT8
NXV_F8_CASTS(uint64_t)
NXV_F8_CASTS(int64_t)
#endif
float nxv_to_bf16(uint64_t x) {
    int shift;
    float top = nxv_to_bf16(nxv_top(x, shift));
    return ldexp(top, shift);
}

float nxv_to_bf16(int64_t x) { return x < 0 ? -nxv_to_bf16(uint64_t(-x)) : nxv_to_bf16(uint64_t(x)); }
#endif

#ifdef NXV_HAS_FP64
NXV_INTEGER_CASTS_OF_FP64(nxv_to_u8, uint, NXV_WRAP_U8, 0.0, 256.0, 255u)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_u16, uint, NXV_WRAP_U16, 0.0, 65536.0, 65535u)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_u32, uint, NXV_WRAP_NOT, 0.0, 4294967296.0, 0xffffffffu)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_u64, uint64_t, NXV_WRAP_NOT, 0.0, 18446744073709551616.0, 0xffffffffffffffffUL)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_s8, int, NXV_WRAP_S8, -128.0, 128.0, 127)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_s16, int, NXV_WRAP_S16, -32768.0, 32768.0, 32767)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_s32, int, NXV_WRAP_NOT, -2147483648.0, 2147483648.0, 0x7fffffff)
NXV_INTEGER_CASTS_OF_FP64(
    nxv_to_s64, int64_t, NXV_WRAP_NOT, -9223372036854775808.0, 9223372036854775808.0, 0x7fffffffffffffffL)
#ifdef NXV_NEEDS_INT8
NXV_INTEGER_CASTS_OF_FP64(nxv_to_u2, uint, NXV_WRAP_U2, 0.0, 4.0, 3u)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_u4, uint, NXV_WRAP_U4, 0.0, 16.0, 15u)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_s2, int, NXV_WRAP_S2, -2.0, 2.0, 1)
NXV_INTEGER_CASTS_OF_FP64(nxv_to_s4, int, NXV_WRAP_S4, -8.0, 8.0, 7)
#endif

// The float next to x towards 0, with its last bit set if it is not x: rounds to f16 and bf16 as x itself would.
// From the bits: drivers may take double(float(x)) for x.
float nxv_round_to_odd(double x) {
    uvec2 bits = unpackDouble2x32(x);
    uint sign = bits.y & 0x80000000u;
    int exponent = int((bits.y >> 20) & 0x7ffu) - 1023 + 127;
    if (nxv_is_nan(x) || nxv_magnitude_bits(x) == 0) return float(x);
    if (exponent >= 255) return uintBitsToFloat(sign | 0x7f800000u);
    uint mantissa = 0x800000u | ((bits.y & 0xfffffu) << 3) | (bits.x >> 29);
    int shift = clamp(1 - exponent, 0, 24);
    bool lost = (bits.x & 0x1fffffffu) != 0u || (mantissa & ((1u << shift) - 1u)) != 0u;
    mantissa = (mantissa >> shift) & (shift == 0 ? 0x7fffffu : 0xffffffu);
    return uintBitsToFloat(sign | uint(max(exponent, 0)) << 23 | mantissa | uint(lost));
}

float nxv_to_f32(double x) { return float(x); }
float nxv_to_f16(double x) { return nxv_round_to_odd(x); }
#ifdef NXV_NEEDS_INT8
NXV_F8_CASTS(double)
#endif
float nxv_to_bf16(double x) { return nxv_round_to_odd(x); }
double nxv_to_f64(bool x) { return double(x); }
double nxv_to_f64(int x) { return double(x); }
double nxv_to_f64(uint x) { return double(x); }
double nxv_to_f64(int64_t x) { return double(x); }
double nxv_to_f64(uint64_t x) { return double(x); }
// NVIDIA's conversion takes denormals for zero, so they are made of their bits.
double nxv_to_f64(float x) {
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
    if (magnitude == 0u || magnitude >= 0x800000u) return double(x);
    double tiny = double(magnitude) * 1.401298464324817e-45lf; // 2^-149, exact
    return packDouble2x32(unpackDouble2x32(tiny) | uvec2(0u, bits & 0x80000000u));
}
double nxv_to_f64(double x) { return x; }
#endif

// Complex numbers: the real part, then the imaginary one. A real type takes the real part.
#define NXV_COMPLEX_CASTS(type) vec2 nxv_to_c64(type x) { return vec2(nxv_to_f32(x), 0.0); }
#define NXV_CASTS_OF_COMPLEX_32(pair) \
    uint nxv_to_u8(pair x) { return nxv_to_u8(x.x); } \
    uint nxv_to_u16(pair x) { return nxv_to_u16(x.x); } \
    uint nxv_to_u32(pair x) { return nxv_to_u32(x.x); } \
    int nxv_to_s8(pair x) { return nxv_to_s8(x.x); } \
    int nxv_to_s16(pair x) { return nxv_to_s16(x.x); } \
    int nxv_to_s32(pair x) { return nxv_to_s32(x.x); } \
    float nxv_to_f16(pair x) { return nxv_to_f16(x.x); } \
    float nxv_to_bf16(pair x) { return nxv_to_bf16(x.x); } \
    float nxv_to_f32(pair x) { return nxv_to_f32(x.x); }
#define NXV_CASTS_OF_COMPLEX_8(pair) \
    uint nxv_to_u2(pair x) { return nxv_to_u2(x.x); } \
    uint nxv_to_u4(pair x) { return nxv_to_u4(x.x); } \
    int nxv_to_s2(pair x) { return nxv_to_s2(x.x); } \
    int nxv_to_s4(pair x) { return nxv_to_s4(x.x); } \
    float nxv_to_f8(pair x) { return nxv_to_f8(x.x); } \
    float nxv_to_f8_e4m3fn(pair x) { return nxv_to_f8_e4m3fn(x.x); }
#define NXV_CASTS_OF_COMPLEX_64(pair) \
    uint64_t nxv_to_u64(pair x) { return nxv_to_u64(x.x); } \
    int64_t nxv_to_s64(pair x) { return nxv_to_s64(x.x); }
vec2 nxv_to_c64(vec2 x) { return x; }
NXV_COMPLEX_CASTS(bool)
NXV_COMPLEX_CASTS(int)
NXV_COMPLEX_CASTS(uint)
NXV_COMPLEX_CASTS(float)
NXV_CASTS_OF_COMPLEX_32(vec2)
#ifdef NXV_NEEDS_INT8
NXV_CASTS_OF_COMPLEX_8(vec2)
#endif
#ifdef NXV_HAS_INT64
NXV_COMPLEX_CASTS(int64_t)
NXV_COMPLEX_CASTS(uint64_t)
NXV_CASTS_OF_COMPLEX_64(vec2)
#endif
#ifdef NXV_HAS_FP64
NXV_COMPLEX_CASTS(double)
double nxv_to_f64(vec2 x) { return nxv_to_f64(x.x); }
double nxv_to_f64(dvec2 x) { return x.x; }
vec2 nxv_to_c64(dvec2 x) { return vec2(x); }
NXV_CASTS_OF_COMPLEX_32(dvec2)
NXV_CASTS_OF_COMPLEX_64(dvec2)
#ifdef NXV_NEEDS_INT8
NXV_CASTS_OF_COMPLEX_8(dvec2)
#endif
#define NXV_WIDE_COMPLEX_CASTS(type) dvec2 nxv_to_c128(type x) { return dvec2(nxv_to_f64(x), 0.0); }
NXV_WIDE_COMPLEX_CASTS(bool)
NXV_WIDE_COMPLEX_CASTS(int)
NXV_WIDE_COMPLEX_CASTS(uint)
NXV_WIDE_COMPLEX_CASTS(int64_t)
NXV_WIDE_COMPLEX_CASTS(uint64_t)
NXV_WIDE_COMPLEX_CASTS(float)
NXV_WIDE_COMPLEX_CASTS(double)
dvec2 nxv_to_c128(vec2 x) { return dvec2(nxv_to_f64(x.x), nxv_to_f64(x.y)); }
dvec2 nxv_to_c128(dvec2 x) { return x; }
#endif

// Every product and both sums are rounded, so that it is the same everywhere. A real factor has no imaginary part to
// multiply with, not one of 0, which would make a NaN of infinity.
#define NXV_COMPLEX_PRODUCT(type, pair) \
    type nxv_complex_product(type a, type b) { return a * b; } \
    pair nxv_complex_product(type a, pair b) { return a * b; } \
    pair nxv_complex_product(pair a, type b) { return a * b; } \
    pair nxv_complex_product(pair a, pair b) { \
        precise type real = a.x * b.x - a.y * b.y; \
        precise type imaginary = a.x * b.y + a.y * b.x; \
        return pair(real, imaginary); \
    }
NXV_COMPLEX_PRODUCT(float, vec2)
#ifdef NXV_HAS_FP64
NXV_COMPLEX_PRODUCT(double, dvec2)
#endif
#define nxv_c64_product nxv_complex_product
#endif
