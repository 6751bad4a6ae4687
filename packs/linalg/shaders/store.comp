#version 450
// A workspace as a result of another type.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; };
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { R_STORAGE to[]; };

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at < count) nxv_store(to, at, R_STORE(TO(nxv_load(from, at))));
}
