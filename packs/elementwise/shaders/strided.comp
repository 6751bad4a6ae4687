#version 450
// An op on operands of any layout: every thread handles VECTORS times WIDTH neighbours on the innermost axis.
#include "operands.glsl"

// Innermost axis first. The outermost extent is never divided by.
struct Axis {
    INDEX extent;
    NxvDivisor divisor;
    INDEX strides[INPUTS];
};

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    INDEX count;
    INDEX result_at;
    INDEX at[INPUTS];
    Axis axes[RANK];
} params;

// Places of the operands' elements that belong to result element i.
INDEX[INPUTS] places(INDEX i) {
    INDEX at[INPUTS] = params.at;
    [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
        INDEX outer = axis == RANK - 1 ? 0 : nxv_divide(i, params.axes[axis].extent, params.axes[axis].divisor);
        INDEX along = i - outer * params.axes[axis].extent;
        [[unroll]] for (int k = 0; k < INPUTS; ++k) at[k] += along * params.axes[axis].strides[k];
        i = outer;
    }
    return at;
}

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
        if (i < params.count) nxv_store(r_vectors, uint((params.result_at + i) / WIDTH), evaluate(operands[v]));
    }
}
