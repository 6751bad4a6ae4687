#version 450
// Moves elements of one size along the axes of a walk, from a place in one buffer to a place in another. Indices that are
// read on the way move the place SHIFTED: `from` or `to`. Every thread takes ELEMENTS of them.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"

// Innermost first. The outermost extent is never divided by.
struct Axis {
    uint extent;
    NxvDivisor divisor;
    uint from;
    uint to;
    uint index;
};

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer From { MOVED source[]; };
layout(set = 0, binding = 1) writeonly buffer To { MOVED target[]; };
#ifdef CLAIMS
layout(set = 0, binding = CLAIMS) readonly buffer Claims { uint claims[]; };
#endif

PARAMS Params {
    uint count;
    uint from;
    uint to;
    uint index;
#if COMPONENTS > 0
    Component components[COMPONENTS];
#endif
    Axis axes[RANK];
} params;

struct Place {
    uint from;
    uint to;
    uint index;
};

Place place(uint i) {
    Place at = Place(params.from, params.to, params.index);
    [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
        uint outer = axis == RANK - 1 ? 0u : nxv_divide(i, params.axes[axis].extent, params.axes[axis].divisor);
        uint along = i - outer * params.axes[axis].extent;
        at.from += along * params.axes[axis].from;
        at.to += along * params.axes[axis].to;
        at.index += along * params.axes[axis].index;
        i = outer;
    }
    return at;
}

void main() {
    uint first = nxv_workgroup() * WORKGROUP * ELEMENTS + gl_LocalInvocationID.x;
    if (first >= params.count) return;

    // Loads of one kind come before the first use of any. Beyond the end the last element is loaded again and not stored.
    Place places[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) places[e] = place(min(first + e * WORKGROUP, params.count - 1u));
    bool is_fault = false;
#ifdef CLAIMS
    uint numbers[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) numbers[e] = 0u;
#endif
#if COMPONENTS > 0
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        uvec2 words[ELEMENTS];
        [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) words[e] = index_words(k, places[e].index, params.components[k]);
        [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
            uint value = index_in(words[e], params.components[k], is_fault);
            places[e].SHIFTED += value * params.components[k].step;
#ifdef CLAIMS
            numbers[e] += value * params.components[k].number;
#endif
        }
    }
#endif
    MOVED moved[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) moved[e] = nxv_load(source, places[e].from);
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        bool is_stored = first + e * WORKGROUP < params.count;
#ifdef CLAIMS
        uint row = (places[e].index - params.index) / COMPONENTS + 1u;
        is_stored = is_stored && nxv_load(claims, numbers[e]) == row;
#endif
        if (is_stored) nxv_store(target, places[e].to, moved[e]);
    }
    nxv_fault(is_fault);
}
