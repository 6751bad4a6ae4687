#version 450
// A tensor with a value around its elements and between them: every thread writes one element, as wide as the padding is
// aligned.
#include "dtype.glsl"
#include "tensor.glsl"

// Innermost first. The operand's elements are `apart` from `low` on, within `span` elements of the result.
struct Axis {
    uint extent;
    NxvDivisor divisor;
    uint low;
    uint span;
    uint apart;
    NxvDivisor steps;
    uint from;
};

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer From { MOVED source[]; };
layout(set = 0, binding = 1) writeonly buffer To { MOVED target[]; };
layout(set = 0, binding = 2) readonly buffer Value { VALUE value[]; };

PARAMS Params {
    uint count;
    uint from;
    uint value;
    Axis axes[RANK];
} params;

void main() {
    uint i = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (i >= params.count) return;

    uint rest = i;
    uint from = params.from;
    bool is_inside = true;
    [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
        uint outer = axis == RANK - 1 ? 0u : nxv_divide(rest, params.axes[axis].extent, params.axes[axis].divisor);
        // Before `low` it wraps, beyond every span; the quotient is then of no use.
        uint past = rest - outer * params.axes[axis].extent - params.axes[axis].low;
        uint at = nxv_divide(past, params.axes[axis].apart, params.axes[axis].steps);
        is_inside = is_inside && past < params.axes[axis].span && at * params.axes[axis].apart == past;
        from += at * params.axes[axis].from;
        rest = outer;
    }
    if (is_inside) {
        nxv_store(target, i, nxv_load(source, from));
    } else {
        uvec4 words = REPEATED(nxv_load(value, params.value));
        nxv_store(target, i, PART(words));
    }
}
