#ifndef NXV_MATH_F64_GLSL
#define NXV_MATH_F64_GLSL
#endif
