// The tensor that updates go to: vectors of its elements, or where SAME is defined, its type, one element that all others are the
// same as.
#ifndef TENSOR_OF_GLSL
#define TENSOR_OF_GLSL

#ifdef SAME
#define TENSOR(vector) SAME
#define TENSOR_AT(vector, place) vector(nxv_load(tensor, params.tensor_at))
#else
#define TENSOR(vector) vector
#define TENSOR_AT(vector, place) nxv_load(tensor, place)
#endif
#endif
