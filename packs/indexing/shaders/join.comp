#version 450
// Moves the elements of several buffers to one, each along the axes of a walk of its own: a workgroup has elements of one part, and
// every thread takes ELEMENTS of them.
#include "dtype.glsl"
#include "tensor.glsl"

// Innermost first. The outermost extent is never divided by.
struct Axis {
    uint extent;
    NxvDivisor divisor;
    uint from;
    uint to;
};

struct Part {
    uint group; // the first workgroup
    uint count;
    uint from;
    uint to;
    Axis axes[RANK];
};

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) writeonly buffer To { MOVED target[]; };
#define SOURCE(k, place) layout(set = 0, binding = place) readonly buffer From##k { MOVED source##k[]; };
SOURCE(0, 1)
SOURCE(1, 2)
#if PARTS > 2
SOURCE(2, 3)
#endif
#if PARTS > 3
SOURCE(3, 4)
#endif
#if PARTS > 4
SOURCE(4, 5)
#endif
#if PARTS > 5
SOURCE(5, 6)
#endif
#if PARTS > 6
SOURCE(6, 7)
#endif
#if PARTS > 7
SOURCE(7, 8)
#endif

PARAMS Params {
    uint groups;
    Part parts[PARTS];
} params;

MOVED load(uint part, uint at) {
    switch (part) {
    case 0: return nxv_load(source0, at);
#if PARTS > 2
    case 2: return nxv_load(source2, at);
#endif
#if PARTS > 3
    case 3: return nxv_load(source3, at);
#endif
#if PARTS > 4
    case 4: return nxv_load(source4, at);
#endif
#if PARTS > 5
    case 5: return nxv_load(source5, at);
#endif
#if PARTS > 6
    case 6: return nxv_load(source6, at);
#endif
#if PARTS > 7
    case 7: return nxv_load(source7, at);
#endif
    default: return nxv_load(source1, at);
    }
}

void main() {
    uint group = nxv_workgroup();
    if (group >= params.groups) return;
    uint part = 0;
    [[unroll]] for (uint k = 1; k < PARTS; ++k) part = group >= params.parts[k].group ? k : part;
    uint first = (group - params.parts[part].group) * WORKGROUP * ELEMENTS + gl_LocalInvocationID.x;
    uint count = params.parts[part].count;
    if (first >= count) return;

    // Loads come before the first store. Beyond the end the last element is loaded again and not stored.
    uint from[ELEMENTS], to[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        uint i = min(first + e * WORKGROUP, count - 1u);
        from[e] = params.parts[part].from;
        to[e] = params.parts[part].to;
        [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
            Axis own = params.parts[part].axes[axis];
            uint outer = axis == RANK - 1 ? 0u : nxv_divide(i, own.extent, own.divisor);
            uint along = i - outer * own.extent;
            from[e] += along * own.from;
            to[e] += along * own.to;
            i = outer;
        }
    }
    MOVED moved[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) moved[e] = load(part, from[e]);
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        if (first + e * WORKGROUP < count) nxv_store(target, to[e], moved[e]);
    }
}
