#version 450
// The sum of at most WORKGROUP parts, divided by the number of elements.
layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Parts { float parts[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float mean[]; };
layout(push_constant) uniform Push { uint part_count; uint count; };
#include "sum.glsl"

void main() {
    uint lane = gl_LocalInvocationID.x;
    float sum = sum_of_workgroup(lane < part_count ? parts[lane] : 0.0);
    if (lane == 0) mean[0] = sum / float(count);
}
