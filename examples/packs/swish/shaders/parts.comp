#version 450
// The sum of squares of every gl_NumWorkGroups-th block of WORKGROUP elements.
layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Parts { float parts[]; };
layout(push_constant) uniform Push { uint first; uint count; };
#include "sum.glsl"

void main() {
    float mine = 0.0;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += WORKGROUP * gl_NumWorkGroups.x) {
        mine += x[first + i] * x[first + i];
    }
    float sum = sum_of_workgroup(mine);
    if (gl_LocalInvocationID.x == 0) parts[gl_WorkGroupID.x] = sum;
}
