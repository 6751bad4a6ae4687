#version 450
// The sum of squares of every gl_NumWorkGroups-th block of WORKGROUP elements.
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Parts { float parts[]; };
layout(push_constant) uniform Push { uint first; uint count; };

#include "sum.glsl"

void main() {
    float mine = 0.0;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += WORKGROUP * gl_NumWorkGroups.x) {
        float value = nxv_load(x, first + i);
        mine += value * value;
    }
    float sum = sum_of_workgroup(mine);
    if (gl_LocalInvocationID.x == 0) nxv_store(parts, gl_WorkGroupID.x, sum);
}
