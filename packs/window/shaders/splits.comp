#version 450
// The sum of the partial results of each element, one split after the other.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Params { uint count; uint splits; } params;
layout(set = 0, binding = 0, std430) readonly restrict buffer Partials { T_VALUE partials[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Results { T_STORAGE results[]; };
#ifdef COUNTS
#include "unfit.glsl"
#endif

void main() {
    uint index = nxv_workgroup() * THREADS + gl_LocalInvocationIndex;
    if (index >= params.count) return;
    T_VALUE sum = T_VALUE(0);
    for (uint split = 0; split < params.splits; ++split) sum += nxv_load(partials, split * params.count + index);
#ifdef COUNTS
    if (is_unfit(sum)) compute_anew();
#endif
    nxv_store(results, index, T_STORE(sum));
}
