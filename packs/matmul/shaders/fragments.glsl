// Fragments of matrices, filled word by word.
//
// This relies on NVIDIA's order of elements in a fragment (g = lane / 4, t = lane % 4), which Vulkan leaves open and the
// host has measured on this device:
//   left 16x16    0, 1: row g, columns 2t, 2t + 1; 2, 3: columns + 8; 4 to 7: the same of row g + 8
//   right 16x16   0, 1: rows 2t, 2t + 1, column g; 2, 3: rows + 8; 4 to 7: the same of column g + 8
//   sums          as the left one
// Bytes lie as 16-bit elements do, twice as many of them along k.
#ifndef FRAGMENTS_GLSL
#define FRAGMENTS_GLSL
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#if ELEMENT_IS_BF16
#extension GL_EXT_bfloat16 : require
#endif
#include "dtype.glsl"

#if ELEMENT_IS_BF16
#define ELEMENT bfloat16_t
#define LOW(u) uintBitsToBFloat16EXT(uint16_t((u) & 0xffffu))
#define HIGH(u) uintBitsToBFloat16EXT(uint16_t((u) >> 16))
#elif ELEMENT_IS_S8
#define ELEMENT int8_t
#elif ELEMENT_IS_U8
#define ELEMENT uint8_t
#else
#define ELEMENT float16_t
// Not unpackFloat2x16: NVIDIA's driver copies every register for it.
#define LOW(u) uint16BitsToHalf(uint16_t((u) & 0xffffu))
#define HIGH(u) uint16BitsToHalf(uint16_t((u) >> 16))
#endif
#if ELEMENT_IS_S8
#define SUM int
#define SUM4 ivec4
#elif ELEMENT_IS_U8
#define SUM uint
#define SUM4 uvec4
#else
#define SUM float
#define SUM4 vec4
#endif
#if ELEMENT_IS_S8 || ELEMENT_IS_U8
#define DEPTH 32
#else
#define DEPTH 16
#endif

#define LEFT coopmat<ELEMENT, gl_ScopeSubgroup, 16, DEPTH, gl_MatrixUseA>
#define RIGHT coopmat<ELEMENT, gl_ScopeSubgroup, DEPTH, 16, gl_MatrixUseB>
#define SUMS coopmat<SUM, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

// Words in the order in which NVIDIA's instructions take them: then a load's registers are a fragment's, none is copied.
#if DEPTH == 16
#define FILL(f, at, word) f[at] = LOW(word); f[at + 1] = HIGH(word);
#else
#define FILL(f, at, word) \
    f[2 * at] = ELEMENT(word); f[2 * at + 1] = ELEMENT(word >> 8); \
    f[2 * at + 2] = ELEMENT(word >> 16); f[2 * at + 3] = ELEMENT(word >> 24);
#endif

LEFT left(uvec4 x) {
    LEFT f;
    FILL(f, 0, x.x) FILL(f, 4, x.y) FILL(f, 2, x.z) FILL(f, 6, x.w)
    return f;
}

RIGHT right(uvec4 x) {
    RIGHT f;
    FILL(f, 0, x.x) FILL(f, 2, x.y) FILL(f, 4, x.z) FILL(f, 6, x.w)
    return f;
}
#endif
