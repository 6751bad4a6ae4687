#version 450
// Between two sweeps: the next one has something to do where the last one had.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; };
layout(set = 0, binding = 0, std430) buffer States { uint states[]; };

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    nxv_store(states, 2 * at, nxv_load(states, 2 * at + 1));
    nxv_store(states, 2 * at + 1, 0);
}
