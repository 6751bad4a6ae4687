#version 450
// One update each thread: the number of the place that it goes to. CLAIMED keeps the last update of each place, LINKED makes a
// list of those of each group of places; else they are listed to be sorted.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"

layout(local_size_x = WORKGROUP) in;
#ifdef CLAIMED
layout(set = 0, binding = 0) buffer Claims { uint claims[]; };
#elif defined(LINKED)
#include "lists.glsl"
layout(set = 0, binding = 0) buffer Heads { uint heads[]; };
layout(set = 0, binding = LINKED) writeonly buffer Next { uint next[]; };
#else
layout(set = 0, binding = 0) writeonly buffer Updates { uvec2 updates[]; };
#endif

PARAMS Params {
    uint count;
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

uint number_of(uint row) {
    uint number = 0u;
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        uint value = index_of(k, params.index + row * params.step, params.components[k]);
        number += value * params.components[k].number;
    }
    return number;
}

void main() {
    uint row = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (row >= params.count) return;
#ifdef CLAIMED
    atomicMax(claims[number_of(row)], row + 1u);
#elif defined(LINKED)
    uint number = number_of(row);
    uint after = atomicExchange(heads[number / GROUP], row + 1u);
    nxv_store(next, row, after * GROUP + number % GROUP);
#else
    nxv_store(updates, row, uvec2(number_of(row), row));
#endif
}
