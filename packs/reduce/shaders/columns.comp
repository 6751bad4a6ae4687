#version 450
// Reduces across columns: COLUMNS invocations side by side each own a vector of WIDTH neighbours on the column axis, the
// others share the reduced indices: none do where columns are many. With one column it reduces elements of any stride.
#include "exchange.glsl"
#include "space.glsl"

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 0) const uint COLUMNS = 1;

// Reduced axes but the outermost; where the compiler knows that there is none, nothing is divided.
layout(constant_id = 1) const uint INNER_REDUCED = 0;

// Where reduced element `r` is, and its index.
uint located(Space reduced, uint r, uint at, uint index, out uint index_there) {
    Place place = locate(reduced, r);
    index_there = index + place.index;
    return at + place.operand;
}

void reduce_column(inout State states[STATES], uint at, uint index, uint r, uint end) {
    const uint slices = WORKGROUP / COLUMNS;
    Space reduced = params.reduced;
    reduced.axes_count = INNER_REDUCED;
    uint indices[UNROLL];
#define FROM(u, place) fetch(located(reduced, place, at, index, indices[u]))
#define LOADED(u) FROM(u, r + (u) * slices)
#define ABSORBED(u) absorb(states, items[u], indices[u], 0)
#define LAST_LOADED(u) FROM(u, min(r + (u) * slices, end - 1))
#define LAST_ABSORBED(u) if (r + (u) * slices < end) ABSORBED(u)
    for (; r + (UNROLL - 1) * slices < end; r += UNROLL * slices) ROUND(UNROLL, LOADED, ABSORBED)

    // What is left, all at once too.
#define LAST_ROUND(count) \
    if (r + (count) / 2 * slices < end) { \
        ROUND(count, LAST_LOADED, LAST_ABSORBED) \
        r = end; \
    }
    LAST_ROUNDS
}

void main() {
    uint slice = invocation() / COLUMNS;
    uint part = params.part_begin + gl_WorkGroupID.y;
    uint first = part * params.part_extent;
    uint end = first + min(params.part_extent, params.extent - first);

    // Vectors are counted through the outer space, so that short column axes share a workgroup.
    uint vectors_each = (params.columns + WIDTH - 1) / WIDTH;
    uint vector_end = vectors_each * (params.outer_end - params.outer_begin);
    uint begin = gl_WorkGroupID.x * COLUMNS;
    for (; begin < vector_end; begin += gl_NumWorkGroups.x * COLUMNS) {
        uint vector = begin + invocation() % COLUMNS;
        Place place = locate(params.outer, params.outer_begin + vector / vectors_each);
        uint column = vector % vectors_each * WIDTH;
        State states[STATES];
        [[unroll]] for (uint k = 0; k < STATES; ++k) states[k] = start();
        if (vector < vector_end) {
            uint at = params.operand_at + place.operand + column * params.column_operand;
            reduce_column(states, at, place.index, first + slice, end);
        }
        [[unroll]] for (uint k = 0; k < STATES; ++k) {
            State state = merge_across(states[k], COLUMNS, WORKGROUP);
            if (vector < vector_end && slice == 0) {
                uint result_at = place.result + (column + k) * params.column_result;
                give(params.result_at + result_at + part * params.part_stride, state);
            }
        }
    }
}
