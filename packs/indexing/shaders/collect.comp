#version 450
// Collects the updates of long lists, of which there are none most of the time. COUNT: how many each has. FIRST: where those
// of each begin, by one workgroup. PLACE: puts them there, in any order.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"
#include "lists.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) buffer Longs { uint longs[]; };
layout(set = 0, binding = 1) readonly buffer Heads { uint heads[]; };
layout(set = 0, binding = 3) buffer Ranks { uint ranks[]; };
layout(set = 0, binding = 4) writeonly buffer Collected { uint collected[]; };

PARAMS Params {
    uint count;
    uint groups;
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

#ifdef FIRST

shared uint exchanged[WORKGROUP];

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint count = nxv_load(longs, 0u);
    uint each = (count + WORKGROUP - 1u) / WORKGROUP;
    uint end = min((mine + 1u) * each, count);
    uint sum = 0u;
    for (uint id = mine * each; id < end; ++id) sum += nxv_load(longs, LONG_LENGTH_AT(id));
    exchanged[mine] = sum;
    barrier(); // every sum is there before it is read
    uint before = 0u;
    for (uint other = 0u; other < mine; ++other) before += exchanged[other];
    for (uint id = mine * each; id < end; ++id) {
        nxv_store(longs, LONG_FIRST_AT(id), before);
        before += nxv_load(longs, LONG_LENGTH_AT(id));
    }
}

#else

void collect(uint row) {
    uint number = 0u;
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        number += index_of(k, params.index + row * params.step, params.components[k]) * params.components[k].number;
    }
    uint head = nxv_load(heads, number);
    if ((head & LONG_PLACE) == 0u) return;
    uint id = head & ~LONG_PLACE;
#ifdef COUNT
    nxv_store(ranks, row, atomicAdd(longs[LONG_LENGTH_AT(id)], 1u));
#else
    nxv_store(collected, nxv_load(longs, LONG_FIRST_AT(id)) + nxv_load(ranks, row), row);
#endif
}

void main() {
    if (nxv_load(longs, 0u) == 0u) return;
    uint row = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    for (; row < params.count; row += params.groups * WORKGROUP) collect(row);
}

#endif
