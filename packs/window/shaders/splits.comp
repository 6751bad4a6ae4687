#version 450
// The sum of the partial results of each element, one split after the other.
#ifdef UNITS_OF_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "dtype.glsl"
#include "tensor.glsl"
#define OWN_WORDS uint count; uint splits;
#include "finish.glsl"

layout(local_size_x = THREADS) in;
layout(set = 0, binding = 0, std430) readonly restrict buffer Partials { T_VALUE partials[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Results { RESULT results[]; };
#ifdef COUNTS
#include "unfit.glsl"
#endif

void main() {
    uint index = nxv_workgroup() * THREADS + gl_LocalInvocationIndex;
    if (index >= count) return;
    T_VALUE sum = T_VALUE(0);
    for (uint split = 0; split < splits; ++split) sum += nxv_load(partials, split * count + index);
#ifdef COUNTS
    if (is_unfit(sum)) compute_anew();
#endif
#ifdef EPILOGUE
    uint inner = index - nxv_divide(index, outer_step, by_outer_step) * outer_step;
    uint filter_index = inner / filter_step;
    uint place = index - filter_index * filter_step;
#endif
    nxv_store(results, index, TO_RESULT(sum, place, filter_index));
}
