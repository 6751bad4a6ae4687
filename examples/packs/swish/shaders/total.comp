#version 450
// The sum of at most WORKGROUP parts, divided by the number of elements.
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Parts { float parts[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float mean[]; };
layout(push_constant) uniform Push { uint part_count; uint count; };

#include "sum.glsl"

void main() {
    uint lane = gl_LocalInvocationID.x;
    float part = 0.0;
    if (lane < part_count) part = nxv_load(parts, lane);
    float sum = sum_of_workgroup(part);
    if (lane == 0) nxv_store(mean, 0, sum / float(count));
}
