#version 450
// An op on operands of any layout: every thread handles VECTORS times WIDTH neighbours on the innermost axis.
#include "operands.glsl"

layout(local_size_x = WORKGROUP) in;
#define RESULTS 1
#include "places.glsl"

void main() {
    const uint apart = WORKGROUP * WIDTH;
    INDEX first = INDEX(nxv_workgroup()) * apart * VECTORS + gl_LocalInvocationID.x * WIDTH;
    if (first >= params.count) return;

    // All loads come before the first use. Beyond the end, the last elements are loaded again and not stored.
    Operands operands[VECTORS];
    [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
        operands[v] = read(places(min(first + v * apart, params.count - WIDTH)), params.axes[0].strides);
    }
    [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
        INDEX i = first + v * apart;
        if (i < params.count) nxv_store(r_vectors, uint((params.results_at[0] + i) / WIDTH), evaluate(operands[v]));
    }
}
