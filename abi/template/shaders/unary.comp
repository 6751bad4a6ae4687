#version 450
// One invocation per element. WORKGROUP and EXPRESSION come from the plan.
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };
layout(push_constant) uniform Push { uint first; uint count; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) {
        float a = nxv_load(x, first + i);
        nxv_store(y, i, EXPRESSION(a));
    }
}
