#version 450
// A tensor with a value around its elements and between them. Every thread writes the 16 bytes of WIDTH neighbours, whose
// elements are as wide as the padding is aligned.
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
layout(set = 0, binding = 1) writeonly buffer Vectors { uvec4 vectors[]; };
layout(set = 0, binding = 2) readonly buffer Value { VALUE value[]; };

PARAMS Params {
    uint count;
    uint from;
    uint value;
    Axis axes[RANK];
} params;

// Where an element of the result comes from. `past` is how far it is behind `low` on the innermost axis, before which it
// wraps, beyond every span; `from` leaves that axis out, and `is_inside` as well.
struct Place {
    uint from;
    uint past;
    uint left; // elements of the innermost axis from it on
    bool is_inside;
};

Place place_of(uint i) {
    uint rest = RANK == 1 ? 0u : nxv_divide(i, params.axes[0].extent, params.axes[0].divisor);
    uint along = i - rest * params.axes[0].extent;
    Place place = Place(params.from, along - params.axes[0].low, params.axes[0].extent - along, true);
    [[unroll]] for (int axis = 1; axis < RANK; ++axis) {
        uint outer = axis == RANK - 1 ? 0u : nxv_divide(rest, params.axes[axis].extent, params.axes[axis].divisor);
        uint past = rest - outer * params.axes[axis].extent - params.axes[axis].low;
        uint at = nxv_divide(past, params.axes[axis].apart, params.axes[axis].steps);
        place.is_inside = place.is_inside && past < params.axes[axis].span && at * params.axes[axis].apart == past;
        place.from += at * params.axes[axis].from;
        rest = outer;
    }
    return place;
}

// The element `k` behind a place, on the same innermost axis.
MOVED element_at(Place place, uint k, MOVED padding) {
    uint past = place.past + k;
    uint at = nxv_divide(past, params.axes[0].apart, params.axes[0].steps);
    bool is_inside = place.is_inside && past < params.axes[0].span && at * params.axes[0].apart == past;
    return is_inside ? nxv_load(source, place.from + at * params.axes[0].from) : padding;
}

uvec4 words_of(MOVED own[WIDTH]) {
#if WIDTH == 1
    return own[0];
#elif WIDTH == 2
    return uvec4(own[0], own[1]);
#else
    const uint parts = WIDTH / 4;
    uvec4 words = uvec4(0);
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) words[k / parts] |= uint(own[k]) << (k % parts * (32 / parts));
    return words;
#endif
}

void main() {
    uint first = (nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x) * WIDTH;
    if (first >= params.count) return;

    uvec4 words = REPEATED(nxv_load(value, params.value));
    MOVED padding = PART(words);
    Place place = place_of(first);
    MOVED own[WIDTH];
    // Where the padding behind it is negative, the operand reaches farther than the result's row.
    bool is_whole = place.is_inside && params.axes[0].apart == 1u && place.past < params.axes[0].span
        && min(params.axes[0].span - place.past, place.left) >= WIDTH;
    if (is_whole) {
        uint from = place.from + place.past * params.axes[0].from;
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) own[k] = nxv_load(source, from + k * params.axes[0].from);
    } else if (place.left >= WIDTH) {
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) own[k] = element_at(place, k, padding);
    } else {
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
            own[k] = first + k < params.count ? element_at(place_of(first + k), 0u, padding) : padding;
        }
    }
    if (params.count - first >= WIDTH) {
        nxv_store(vectors, first / WIDTH, words_of(own));
    } else {
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
            if (first + k < params.count) nxv_store(target, first + k, own[k]);
        }
    }
}
