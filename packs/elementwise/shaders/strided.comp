#version 450
// An op on operands of any layout: every thread handles WIDTH neighbours on the innermost axis.
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
    INDEX first = (INDEX(nxv_workgroup()) * WORKGROUP + gl_LocalInvocationID.x) * WIDTH;
    if (first >= params.count) return;
    Operands operands = read(places(first), params.axes[0].strides);
    r_vectors[(params.result_at + first) / WIDTH] = evaluate(operands);
}
