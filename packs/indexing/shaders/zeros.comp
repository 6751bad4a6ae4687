#version 450
// Words that are 0, four at once.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) writeonly buffer To { uvec4 target[]; };
PARAMS Params { uint count; } params;

void main() {
    uint i = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (i < params.count) nxv_store(target, i, uvec4(0));
}
