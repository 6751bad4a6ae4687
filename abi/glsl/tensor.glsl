#ifndef NXV_TENSOR_GLSL
#define NXV_TENSOR_GLSL
#endif
