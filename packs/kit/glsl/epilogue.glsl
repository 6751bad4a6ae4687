// What becomes of a sum before it is stored: an epilogue, whose code the plan writes (E_CODE, of x and of the further operands o0 to
// o3). E_* is the type in which it is computed, E_SUM that of the sum, R_* the result's; the further operands are E0 to E3, in
// memory E*_STORED. A shader has the words of EPILOGUE_WORDS last in its push constants and includes this behind them.
#ifndef EPILOGUE_GLSL
#define EPILOGUE_GLSL

#ifdef MATH_F32
#include "math_f32.glsl"
#endif
#ifdef MATH_F64
#include "math_f64.glsl"
#endif
#include "tensor.glsl"
#include "functions.glsl"

#if E_OPERANDS > 0
layout(set = 0, binding = E_FIRST, std430) readonly restrict buffer E0 { E0_STORED e0[]; };
#endif
#if E_OPERANDS > 1
layout(set = 0, binding = E_FIRST + 1, std430) readonly restrict buffer E1 { E1_STORED e1[]; };
#endif
#if E_OPERANDS > 2
layout(set = 0, binding = E_FIRST + 2, std430) readonly restrict buffer E2 { E2_STORED e2[]; };
#endif
#if E_OPERANDS > 3
layout(set = 0, binding = E_FIRST + 3, std430) readonly restrict buffer E3 { E3_STORED e3[]; };
#endif

// The place of the element of operand `i` that belongs to a place in the result. Where bit 3 i + n of E_STILL is set, the plan knows
// that its step n is 0, and a compiler sees that one element serves many results.
#ifndef E_STILL
#define E_STILL 0
#endif
#define E_STEP(i, n) ((E_STILL >> (3 * (i) + (n)) & 1) == 1 ? 0u : epilogue[4 * (i) + 1 + (n)])
// Where E*_INNER* is not 0, the place is one along two axes, and there are the extent and the step of the inner one.
#define E_ALONG(i, n, place) \
    (E##i##_INNER##n == 0 ? (place) * E_STEP(i, n) \
                          : (place) / epilogue[E##i##_INNER##n] * E_STEP(i, n) + \
                                (place) % epilogue[E##i##_INNER##n] * epilogue[E##i##_INNER##n + 1])
#define E_AT(i) (epilogue[4 * i] + E_ALONG(i, 0, batch) + E_ALONG(i, 1, row) + E_ALONG(i, 2, column))

// 0, which compilers do not know: rows are below 2^31.
#define ZERO (row >> 31)

// The result of a sum and the elements that belong to it, in the register type of its own.
R_VALUE made_of(E_SUM sum, uint row E_PARAMETERS) {
    E_VALUE x = E_FROM(sum);
    E_CODE
}

// What E_RUN neighbouring results have of the operands that are read in words, each of several elements or one. A shader asks
// for it early and calls finished() for result number i of them later: what is read between two stores waits for the first.
#if E_RUN > 1
struct Neighbours { E_FIELDS };

uint[1] words_of(uint x) { return uint[1](x); }
uint[2] words_of(uvec2 x) { return uint[2](x.x, x.y); }
uint[4] words_of(uvec4 x) { return uint[4](x.x, x.y, x.z, x.w); }
uint[8] words_of(uvec4 x, uvec4 y) { return uint[8](x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w); }

// For the first result at that place.
Neighbours neighbours_at(uint batch, uint row, uint column) {
    Neighbours own;
    E_READ
    return own;
}
#else
#define Neighbours uint
#define neighbours_at(batch, row, column) 0u
#endif

R_VALUE finished(Neighbours own, uint i, E_SUM sum, uint batch, uint row, uint column) {
    return made_of(sum, row E_ELEMENTS);
}

// One for itself.
R_VALUE finished(E_SUM sum, uint batch, uint row, uint column) {
    return finished(neighbours_at(batch, row, column), 0, sum, batch, row, column);
}
#endif
