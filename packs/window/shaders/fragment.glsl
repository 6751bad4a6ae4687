// Fragments of 16 x 16 elements and what they are made of.
#extension GL_KHR_cooperative_matrix : require
#if BF16
#extension GL_EXT_bfloat16 : require
#define ELEMENT_TYPE bfloat16_t
#define ELEMENT_OF(bits) uintBitsToBFloat16EXT(uint16_t(bits))
#else
#define ELEMENT_TYPE float16_t
// Not unpackFloat2x16: with it NVIDIA's driver copies every register.
#define ELEMENT_OF(bits) uint16BitsToHalf(uint16_t(bits))
#endif
#define MATRIX_A coopmat<ELEMENT_TYPE, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<ELEMENT_TYPE, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_C coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define MATRIX_C_ZERO MATRIX_C(0)
#define MULTIPLY(a, b, c) coopMatMulAdd(a, b, c)
#define ELEMENT(m, i) m[i]
#define SUBGROUP gl_SubgroupID
#define LANE gl_SubgroupInvocationID

MATRIX_A rows_of(uvec4 x) {
    MATRIX_A f;
    ELEMENT(f, 0) = ELEMENT_OF(x.x & 0xffffu); ELEMENT(f, 1) = ELEMENT_OF(x.x >> 16);
    ELEMENT(f, 4) = ELEMENT_OF(x.y & 0xffffu); ELEMENT(f, 5) = ELEMENT_OF(x.y >> 16);
    ELEMENT(f, 2) = ELEMENT_OF(x.z & 0xffffu); ELEMENT(f, 3) = ELEMENT_OF(x.z >> 16);
    ELEMENT(f, 6) = ELEMENT_OF(x.w & 0xffffu); ELEMENT(f, 7) = ELEMENT_OF(x.w >> 16);
    return f;
}

MATRIX_B columns_of(uvec2 x, uvec2 y) {
    MATRIX_B f;
    ELEMENT(f, 0) = ELEMENT_OF(x.x & 0xffffu); ELEMENT(f, 1) = ELEMENT_OF(x.x >> 16);
    ELEMENT(f, 2) = ELEMENT_OF(x.y & 0xffffu); ELEMENT(f, 3) = ELEMENT_OF(x.y >> 16);
    ELEMENT(f, 4) = ELEMENT_OF(y.x & 0xffffu); ELEMENT(f, 5) = ELEMENT_OF(y.x >> 16);
    ELEMENT(f, 6) = ELEMENT_OF(y.y & 0xffffu); ELEMENT(f, 7) = ELEMENT_OF(y.y >> 16);
    return f;
}

#if !WIDE_RESULT
// Two results as they are stored.
uint both(float x, float y) {
#if BF16_RESULT
    // To nearest, ties to even: conversions of whole matrices cut off.
    uint a = floatBitsToUint(x), b = floatBitsToUint(y);
    a = (a & 0x7fffffffu) > 0x7f800000u ? a | 0x400000u : a + 0x7fffu + ((a >> 16) & 1u);
    b = (b & 0x7fffffffu) > 0x7f800000u ? b | 0x400000u : b + 0x7fffu + ((b >> 16) & 1u);
    return (a >> 16) | (b & 0xffff0000u);
#else
    return packFloat2x16(f16vec2(x, y));
#endif
}
#endif
