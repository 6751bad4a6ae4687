#version 450
// The result of reducing no elements, `count` times.
#include "state.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params { uint count; } params;
layout(set = 0, binding = 0) writeonly buffer Results { R_STORAGE results[]; };

void main() {
    uint at = gl_WorkGroupID.x * WORKGROUP + gl_LocalInvocationIndex;
    for (; at < params.count; at += gl_NumWorkGroups.x * WORKGROUP) {
        results[at] = R_STORE(result(start()));
    }
}
