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
    bool is_claimed;
};

Place place(uint i) {
    Place at = Place(params.from, params.to, true);
    uint index = params.index;
    [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
        uint outer = axis == RANK - 1 ? 0u : nxv_divide(i, params.axes[axis].extent, params.axes[axis].divisor);
        uint along = i - outer * params.axes[axis].extent;
        at.from += along * params.axes[axis].from;
        at.to += along * params.axes[axis].to;
        index += along * params.axes[axis].index;
        i = outer;
    }
#if COMPONENTS > 0
    uint number = 0u;
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        uint value = index_of(k, index, params.components[k]);
        at.SHIFTED += value * params.components[k].step;
        number += value * params.components[k].number;
    }
#endif
#ifdef CLAIMS
    at.is_claimed = nxv_load(claims, number) == (index - params.index) / COMPONENTS + 1u;
#endif
    return at;
}

void main() {
    uint first = nxv_workgroup() * WORKGROUP * ELEMENTS + gl_LocalInvocationID.x;
    if (first >= params.count) return;

    // All loads come before the first store. Beyond the end the last element is loaded again and not stored.
    Place places[ELEMENTS];
    MOVED moved[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        places[e] = place(min(first + e * WORKGROUP, params.count - 1u));
        moved[e] = nxv_load(source, places[e].from);
    }
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        if (first + e * WORKGROUP < params.count && places[e].is_claimed) nxv_store(target, places[e].to, moved[e]);
    }
}
