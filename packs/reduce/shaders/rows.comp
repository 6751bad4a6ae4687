#version 450
// Reduces rows of adjacent elements: LANES invocations share a row, or the part of it that the workgroup handles.
#include "exchange.glsl"
#include "space.glsl"

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 0) const uint LANES = 1;

// Vectors start at a multiple of WIDTH; what is before the first and behind the last one is read by element.
State reduce_row(uint at, uint count, uint index, uint lane) {
    State states[STATES];
    [[unroll]] for (uint k = 0; k < STATES; ++k) states[k] = start();
    const uint step = params.reduced.index;

    uint head = min((0u - at) % WIDTH, count);
    for (uint i = lane; i < head; i += LANES) {
        states[0] = take(states[0], A_LOAD(elements[at + i]), index + i * step);
    }

    uint vector_count = (count - head) / WIDTH;
    uint v = lane;
#define LOADED(u) fetch(at + head + (v + (u) * LANES) * WIDTH)
#define ABSORBED(u) absorb(states, items[u], index + (head + (v + (u) * LANES) * WIDTH) * step, step)
    for (; v + (UNROLL - 1) * LANES < vector_count; v += UNROLL * LANES) ROUND(UNROLL, LOADED, ABSORBED)

    // What is left, all at once too.
#define LAST_LOADED(u) fetch(at + head + min(v + (u) * LANES, vector_count - 1) * WIDTH)
#define LAST_ABSORBED(u) if (v + (u) * LANES < vector_count) ABSORBED(u)
#define LAST_ROUND(count) \
    if (v + (count) / 2 * LANES < vector_count) { \
        ROUND(count, LAST_LOADED, LAST_ABSORBED) \
        v = vector_count; \
    }
    LAST_ROUNDS

    for (uint i = head + vector_count * WIDTH + lane; i < count; i += LANES) {
        states[0] = take(states[0], A_LOAD(elements[at + i]), index + i * step);
    }
    [[unroll]] for (uint k = 1; k < STATES; ++k) states[0] = merge(states[0], states[k]);
    return states[0];
}

void main() {
    const uint rows = WORKGROUP / LANES;
    uint lane = invocation() % LANES;
    uint part = params.part_begin + gl_WorkGroupID.y;
    uint first = part * params.part_extent;
    uint count = min(params.part_extent, params.extent - first);

    uint begin = params.outer_begin + gl_WorkGroupID.x * rows;
    for (; begin < params.outer_end; begin += gl_NumWorkGroups.x * rows) {
        uint row = begin + invocation() / LANES;
        Place place = locate(params.outer, row);
        State state = start();
        if (row < params.outer_end) {
            uint index = place.index + first * params.reduced.index;
            state = reduce_row(params.operand_at + place.operand + first, count, index, lane);
        }
        state = merge_across(state, 1, LANES);
        if (row < params.outer_end && lane == 0) {
            give(params.result_at + place.result + part * params.part_stride, state);
        }
    }
}
