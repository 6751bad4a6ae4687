#version 450
// The elements of the result, each with the sum of its updates, which are in the list of its group of places and are sorted
// first. A workgroup has WORKGROUP groups, or so many elements where a group is one place. Groups with more than LIST updates
// are left out and noted as crowded; CROWDED is the place of their number.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lists.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { R_STORAGE tensor[]; };
layout(set = 0, binding = 1) readonly buffer Updates { R_STORAGE updates[]; };
layout(set = 0, binding = 2) writeonly buffer Result { R_STORAGE result[]; };
layout(set = 0, binding = 3) buffer Heads { uint heads[]; };
layout(set = 0, binding = 4) readonly buffer Next { uint next[]; };
layout(set = 0, binding = 5) writeonly buffer Crowded { uint crowded[]; };

PARAMS Params {
    uint count;
    uint part; // elements of a place
    NxvDivisor by_part;
    uint tensor_at;
    uint updates_at;
} params;

const uint NONE = 0xffffffffu;

// An entry is the number of an update times GROUP, plus which of the places it goes to.
R_VALUE update(uint entry, uint within) {
    return R_LOAD(nxv_load(updates, params.updates_at + entry / GROUP * params.part + within));
}

// The first entry of a list, which loses it.
uint take(inout uint head) {
    if (head == 0u) return NONE;
    uint row = head - 1u;
    uint after = nxv_load(next, row);
    head = after / GROUP;
    return row * GROUP + after % GROUP;
}

// Sorts a list; the number of its entries, or NONE where it is too long.
uint sort_list(uint head, out uint sorted[LIST]) {
    uint count = 0u;
    while (head != 0u) {
        if (count == LIST) return NONE;
        uint entry = take(head);
        uint at = count++;
        for (; at > 0u && sorted[at - 1u] > entry; --at) sorted[at] = sorted[at - 1u];
        sorted[at] = entry;
    }
    return count;
}

void note_crowd(uint group) {
    nxv_store(crowded, atomicAdd(heads[CROWDED], 1u), group);
    nxv_store(heads, group, CROWD);
}

#define EXCHANGE(a, b) { \
    uint low = min(a, b); \
    b = max(a, b); \
    a = low; \
}
// Networks of Batcher's merges (1968).
#define SORT_4(v) \
    EXCHANGE(v.x, v.y) EXCHANGE(v.z, v.w) EXCHANGE(v.x, v.z) EXCHANGE(v.y, v.w) EXCHANGE(v.y, v.z)
#define MERGE_8(v, w) \
    EXCHANGE(v.x, w.x) EXCHANGE(v.y, w.y) EXCHANGE(v.z, w.z) EXCHANGE(v.w, w.w) \
    EXCHANGE(v.z, w.x) EXCHANGE(v.w, w.y) \
    EXCHANGE(v.y, v.z) EXCHANGE(v.w, w.x) EXCHANGE(w.y, w.z)

#if GROUP > 1

// Elements of a group are as many banks of shared memory apart as neighbours in the result do not share.
const uint APART = WORKGROUP + 32u / GROUP;
shared R_VALUE sums[GROUP * APART];
shared uint touched[WORKGROUP];

#define ADD(slot, loaded, found) \
    if (slot != NONE) { \
        sums[slot % GROUP * APART + gl_LocalInvocationIndex] += loaded; \
        found |= 1u << (slot % GROUP); \
    }

// Loads come before the first sum.
uint add_four(uvec4 of) {
    uvec4 at = mix(of, uvec4(0), equal(of, uvec4(NONE)));
    R_VALUE x = update(at.x, 0), y = update(at.y, 0), z = update(at.z, 0), w = update(at.w, 0);
    uint found = 0u;
    ADD(of.x, x, found)
    ADD(of.y, y, found)
    ADD(of.z, z, found)
    ADD(of.w, w, found)
    return found;
}

uint add_group(uint group, uint head) {
    uint rest = head;
    uvec4 v, w;
    v.x = take(rest);
    v.y = take(rest);
    v.z = take(rest);
    v.w = take(rest);
    bool is_short = rest == 0u;
    SORT_4(v)
    if (is_short) return add_four(v);
    w.x = take(rest);
    w.y = take(rest);
    w.z = take(rest);
    w.w = take(rest);
    if (rest == 0u) {
        SORT_4(w)
        MERGE_8(v, w)
        return add_four(v) | add_four(w);
    }
    uint sorted[LIST];
    uint count = sort_list(head, sorted);
    if (count == NONE) {
        note_crowd(group);
        return NONE;
    }
    uint found = 0u;
    for (uint i = 0u; i < count; ++i) ADD(sorted[i], update(sorted[i], 0), found)
    return found;
}

void main() {
    uint own = gl_LocalInvocationIndex;
    uint first = nxv_workgroup() * WORKGROUP;
    R_STORAGE before[GROUP];
    [[unroll]] for (uint e = 0; e < GROUP; ++e) {
        uint i = min(first * GROUP + e * WORKGROUP + own, params.count - 1u);
        before[e] = nxv_load(tensor, params.tensor_at + i);
        sums[e * APART + own] = R_VALUE(0);
    }
    uint group = first + own;
    uint head = group * GROUP < params.count ? nxv_load(heads, group) : 0u;
    touched[own] = head == 0u ? 0u : add_group(group, head);
    barrier(); // every sum is there
    [[unroll]] for (uint e = 0; e < GROUP; ++e) {
        uint at = e * WORKGROUP + own;
        uint i = first * GROUP + at;
        uint found = touched[at / GROUP];
        if (i >= params.count || found == NONE) continue;
        bool is_touched = (found >> (at % GROUP) & 1u) == 1u;
        R_VALUE sum = R_LOAD(before[e]) + sums[at % GROUP * APART + at / GROUP];
        R_STORAGE changed = R_STORE(sum);
        if (is_touched) nxv_store(result, i, changed);
        else nxv_store(result, i, before[e]);
    }
}

#else

void main() {
    uint i = nxv_workgroup() * WORKGROUP + gl_LocalInvocationIndex;
    if (i >= params.count) return;
    uint group = nxv_divide(i, params.part, params.by_part);
    uint within = i - group * params.part;
    uint head = nxv_load(heads, group);
    R_STORAGE value = nxv_load(tensor, params.tensor_at + i);
    if (head == CROWD) return;
    if (head != 0u) {
        uint rest = head;
        uint first = take(rest);
        R_VALUE sum = R_VALUE(0) + update(first, within);
        uint second = take(rest);
        // What one or two updates amount to takes no order.
        if (second != NONE) sum += update(second, within);
        if (rest != 0u) {
            uint sorted[LIST];
            uint count = sort_list(head, sorted);
            if (count == NONE) {
                if (within == 0u) note_crowd(group);
                return;
            }
            sum = R_VALUE(0);
            for (uint k = 0u; k < count; ++k) sum += update(sorted[k], within);
        }
        value = R_STORE(R_LOAD(value) + sum);
    }
    nxv_store(result, i, value);
}

#endif
