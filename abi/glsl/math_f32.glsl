#ifndef NXV_MATH_F32_GLSL
#define NXV_MATH_F32_GLSL
#endif
