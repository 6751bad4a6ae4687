// What a type's elements are compared and combined with.
#include "dtype.glsl"
#include "tensor.glsl"

bool is_nan(int x) { return false; }
bool is_nan(uint x) { return false; }
bool is_nan(float x) { return nxv_is_nan(x); }
#ifdef NXV_HAS_INT64
bool is_nan(int64_t x) { return false; }
bool is_nan(uint64_t x) { return false; }
#endif
#ifdef NXV_HAS_FP64
bool is_nan(double x) { return nxv_is_nan(x); }
#endif
#define IS_NAN(x) is_nan(x)
