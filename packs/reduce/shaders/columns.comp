#version 450
// Reduces across columns: COLUMNS invocations side by side each own a vector of WIDTH neighbours on the column axis, the
// others share the reduced indices. With one column it reduces elements of any stride.
#include "exchange.glsl"
#include "space.glsl"

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 0) const uint COLUMNS = 1;

void reduce_column(inout State states[STATES], uint at, uint index, uint r, uint end) {
    const uint slices = WORKGROUP / COLUMNS;
    for (; r + (UNROLL - 1) * slices < end; r += UNROLL * slices) {
        // All loads come before the first use, so that they are in flight together.
        ITEM items[UNROLL];
        uint indices[UNROLL];
        [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
            Place place = locate(params.reduced, r + u * slices);
            items[u] = fetch(at + place.operand);
            indices[u] = index + place.index;
        }
        [[unroll]] for (uint u = 0; u < UNROLL; ++u) absorb(states, items[u], indices[u], 0);
    }
    for (; r < end; r += slices) {
        Place place = locate(params.reduced, r);
        absorb(states, fetch(at + place.operand), index + place.index, 0);
    }
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
