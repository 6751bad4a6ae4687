#version 450
// An op on operands that are contiguous or one repeated element: every thread handles VECTORS vectors of WIDTH elements.
#include "operands.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint count;
    uint result_at;
    uint at[INPUTS];
    uint step[INPUTS];
} params;

// Places of the operands' elements that belong to result element i.
uint[INPUTS] places(uint i) {
    uint at[INPUTS];
    for (int k = 0; k < INPUTS; ++k) at[k] = params.at[k] + i * params.step[k];
    return at;
}

void main() {
    const uint block = WORKGROUP * VECTORS * WIDTH;
    uint first = nxv_workgroup() * block;
    if (first >= params.count) return;

    if (params.count - first < block) {
        for (uint i = first + gl_LocalInvocationID.x; i < params.count; i += WORKGROUP) {
            nxv_store(r_elements, params.result_at + i, evaluate_at(places(i)));
        }
        return;
    }

    // All loads come before the first use, so that they are in flight together.
    first += gl_LocalInvocationID.x * WIDTH;
    Operands operands[VECTORS];
    [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
        operands[v] = read(places(first + v * WORKGROUP * WIDTH), params.step);
    }
    [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
        nxv_store(r_vectors, (params.result_at + first) / WIDTH + v * WORKGROUP, evaluate(operands[v]));
    }
}
