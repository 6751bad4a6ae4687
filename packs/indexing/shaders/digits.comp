#version 450
// How often each digit occurs in each block.
#include "sort.glsl"

layout(set = 0, binding = 0) readonly buffer From { uvec2 source[]; };
layout(set = 0, binding = 1) writeonly buffer Counts { uint counts[]; };

shared uint found[DIGITS];

void main() {
    uint block = nxv_workgroup();
    if (block >= params.blocks) return;

    for (uint d = gl_LocalInvocationID.x; d < DIGITS; d += WORKGROUP) found[d] = 0u;
    barrier(); // The zeros come before what is counted.
    uint end = min((block + 1u) * BLOCK, params.count);
    for (uint i = block * BLOCK + gl_LocalInvocationID.x; i < end; i += WORKGROUP) {
        atomicAdd(found[digit_of(nxv_load(source, i))], 1u);
    }
    barrier(); // All is counted.
    for (uint d = gl_LocalInvocationID.x; d < DIGITS; d += WORKGROUP) {
        nxv_store(counts, d * params.blocks + block, found[d]);
    }
}
