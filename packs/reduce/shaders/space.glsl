// Buffers of a pass, and where in them an element of its iteration space is.
// Positions count modulo 2^32: a bound range holds fewer elements, so every sum of strides comes out right.
#ifndef SPACE_GLSL
#define SPACE_GLSL
#include "state.glsl"

// Element k of a vector; PACKED of them share a 32-bit word.
#if WIDTH == 1
#define LANE(vector, k) vector
#elif defined(PACKED)
#define LANE(vector, k) A_STORAGE(vector[(k) / PACKED] >> (32 / PACKED * ((k) % PACKED)))
#else
#define LANE(vector, k) vector[k]
#endif

// Axes whose index is one number, counted in row-major order.
struct Space {
    uint axes_at;    // the inner axes in the list of all axes
    uint axes_count;
    uint operand;    // strides of the outermost axis, as in Place
    uint result;
    uint index;
};

layout(push_constant) uniform Params {
    uint operand_at;      // of the first element
    uint result_at;       // of the first result
    uint outer_begin;     // what this dispatch covers of the outer space
    uint outer_end;
    uint extent;          // elements that one result is made of
    uint part_extent;     // elements of a part of them, of which every workgroup handles one
    uint part_begin;
    uint part_stride;     // results from one part to the next
    uint columns;
    uint column_operand;  // strides of the column axis
    uint column_result;
    Space outer;
    Space reduced;
} params;

// Extent and strides (in operand, result and index) of axes.
layout(set = 0, binding = 0) readonly buffer Axes { uvec4 axes[]; };

#ifdef MERGES
layout(set = 0, binding = 1) readonly buffer FromValues { ACC_VALUE from_values[]; };
#ifdef SECOND
layout(set = 0, binding = 2) readonly buffer FromSeconds { SECOND from_seconds[]; };
#endif
#else
layout(set = 0, binding = 1) readonly buffer Elements { A_STORAGE elements[]; };
layout(set = 0, binding = 1) readonly buffer Vectors { A_VECTOR vectors[]; };
#endif

#ifdef PARTIAL
layout(set = 0, binding = RESULT_BINDING) writeonly buffer Values { ACC_VALUE values[]; };
#ifdef SECOND
layout(set = 0, binding = RESULT_BINDING + 1) writeonly buffer Seconds { SECOND seconds[]; };
#endif
#else
layout(set = 0, binding = RESULT_BINDING) writeonly buffer Results { R_STORAGE results[]; };
#endif

struct Place {
    uint operand;
    uint result;
    uint index; // among the elements that one result is made of
};

Place locate(Space space, uint index) {
    Place place = Place(0, 0, 0);
    for (uint k = space.axes_count; k > 0; --k) {
        uvec4 axis = axes[space.axes_at + k - 1];
        uint i = index % axis.x;
        index /= axis.x;
        place.operand += i * axis.y;
        place.result += i * axis.z;
        place.index += i * axis.w;
    }
    place.operand += index * space.operand;
    place.result += index * space.result;
    place.index += index * space.index;
    return place;
}

void give(uint at, State state) {
#ifdef PARTIAL
    values[at] = state.value;
#ifdef SECOND
    seconds[at] = state.second;
#endif
#else
    results[at] = R_STORE(result(state));
#endif
}

// An item is what one load brings: a state of an earlier pass, or WIDTH elements.
#ifdef MERGES

#define ITEM State

State fetch(uint at) {
#ifdef SECOND
    return State(from_values[at], from_seconds[at]);
#else
    return State(from_values[at]);
#endif
}

void absorb(inout State states[STATES], State item, uint index, uint index_step) {
    states[0] = merge(states[0], item);
}

#else

#define ITEM A_VECTOR

A_VECTOR fetch(uint at) {
    return vectors[at / WIDTH];
}

void absorb(inout State states[STATES], A_VECTOR item, uint index, uint index_step) {
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
        states[k % STATES] = take(states[k % STATES], A_LOAD(LANE(item, k)), index + k * index_step);
    }
}

#endif

// Takes `count` items: all loads come before the first use, so that they are in flight together.
#define ROUND(count, load, take) { \
    ITEM items[count]; \
    [[unroll]] for (uint u = 0; u < (count); ++u) items[u] = load(u); \
    [[unroll]] for (uint u = 0; u < (count); ++u) { take(u); } \
}

// One of these takes all that are left, of which there are more than half as many as it takes; the others find nothing to do. On a
// CPU, where UNROLL is 2, one may be left.
#if UNROLL == 16
#define LAST_ROUNDS LAST_ROUND(16) LAST_ROUND(8) LAST_ROUND(4) LAST_ROUND(2) LAST_ROUND(1)
#elif UNROLL == 8
#define LAST_ROUNDS LAST_ROUND(8) LAST_ROUND(4) LAST_ROUND(2) LAST_ROUND(1)
#elif UNROLL == 4
#define LAST_ROUNDS LAST_ROUND(4) LAST_ROUND(2) LAST_ROUND(1)
#else
#define LAST_ROUNDS LAST_ROUND(1)
#endif

#endif
