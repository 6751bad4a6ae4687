#version 450
// The result of no elements, everywhere.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params { uint count; } params;
layout(set = 0, binding = 0, std430) writeonly restrict buffer Results { R_STORAGE results[]; };

void main() {
    uint index = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (index < params.count) nxv_store(results, index, R_STORE(R_VALUE(START)));
}
