#version 450
// The elements of the result, each with the sum of the updates in its place's list. A list of more than LIST updates becomes
// a long one, whose place is left out.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lists.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { R_STORAGE tensor[]; };
layout(set = 0, binding = 1) readonly buffer Updates { R_STORAGE updates[]; };
layout(set = 0, binding = 2) writeonly buffer Result { R_STORAGE result[]; };
layout(set = 0, binding = 3) buffer Heads { uint heads[]; };
layout(set = 0, binding = 4) readonly buffer Next { uint next[]; };
layout(set = 0, binding = 5) buffer Longs { uint longs[]; };

PARAMS Params {
    uint count;
    uint part; // elements of a place
    NxvDivisor by_part;
    uint tensor_at;
    uint updates_at;
} params;

R_VALUE update(uint row, uint within) {
    return R_LOAD(nxv_load(updates, params.updates_at + row * params.part + within));
}

// Makes the list of a place a long one.
void lengthen(uint place) {
    uint id = atomicAdd(longs[0], 1u);
    nxv_store(longs, LONG_PLACE_AT(id), place);
    nxv_store(longs, LONG_LENGTH_AT(id), 0u);
    nxv_store(heads, place, LONG_PLACE | id);
}

// The sum of a list in the order of the updates; false where it is too long.
bool sums(uint head, uint within, out R_VALUE sum) {
    uint rows[LIST];
    uint count = 0;
    sum = R_VALUE(0);
    for (; head != 0u; head = nxv_load(next, head - 1u)) {
        if (count == LIST) return false;
        uint at = count++;
        for (; at > 0u && rows[at - 1u] > head - 1u; --at) rows[at] = rows[at - 1u];
        rows[at] = head - 1u;
    }
    for (uint at = 0; at < count; ++at) sum += update(rows[at], within);
    return true;
}

void main() {
    uint first = nxv_workgroup() * WORKGROUP * ELEMENTS + gl_LocalInvocationID.x;
    uint places[ELEMENTS];
    uint found[ELEMENTS];
    R_STORAGE before[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        uint i = min(first + e * WORKGROUP, params.count - 1u);
        places[e] = nxv_divide(i, params.part, params.by_part);
        found[e] = nxv_load(heads, places[e]);
        before[e] = nxv_load(tensor, params.tensor_at + i);
    }
    // What one or two updates amount to takes no order.
    R_VALUE added[ELEMENTS];
    uint after[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        uint i = first + e * WORKGROUP;
        added[e] = R_VALUE(0);
        after[e] = 0u;
        if (i >= params.count || (found[e] & LONG_PLACE) != 0u) continue;
        uint row = (found[e] & ~SHARED_PLACE) - 1u;
        if (found[e] != 0u) added[e] = update(row, i - places[e] * params.part);
        if ((found[e] & SHARED_PLACE) != 0u) after[e] = nxv_load(next, row);
    }
    uint third[ELEMENTS];
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        third[e] = 0u;
        if (after[e] == 0u) continue;
        added[e] += update(after[e] - 1u, first + e * WORKGROUP - places[e] * params.part);
        third[e] = nxv_load(next, after[e] - 1u);
    }
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) {
        uint i = first + e * WORKGROUP;
        if (i >= params.count || (found[e] & LONG_PLACE) != 0u) continue;
        if (found[e] == 0u) {
            nxv_store(result, i, before[e]);
            continue;
        }
        uint within = i - places[e] * params.part;
        if (third[e] != 0u && !sums(found[e] & ~SHARED_PLACE, within, added[e])) {
            if (within == 0u) lengthen(places[e]);
            continue;
        }
        nxv_store(result, i, R_STORE(R_LOAD(before[e]) + added[e]));
    }
}
