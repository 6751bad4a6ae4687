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

// Round to nearest, ties to even. NaN keeps its top payload bits and stays NaN.
uint16_t nxv_store_bf16(float x) {
    uint bits = floatBitsToUint(x);
    bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return uint16_t(is_nan ? (bits >> 16) | 0x40u : rounded);
}

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
