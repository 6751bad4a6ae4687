// What the calls of an expression need, whose code the plan writes; a shader includes this in place of `dtype.glsl`.
// It defines ZERO, a uint that is 0 and that compilers do not know.
#ifndef EXPRESSION_GLSL
#define EXPRESSION_GLSL

#include "dtype.glsl"
#include "tensor.glsl"
#ifdef MATH_F32
#include "math_narrow.glsl"
#endif
#ifdef MATH_F64
#include "math_f64.glsl"
#endif
#include "functions.glsl"
#ifdef MIXED
#include "mixed.glsl"
#endif
#endif
