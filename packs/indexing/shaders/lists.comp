#version 450
// The elements of the result, each with the sum of its updates, which are in the list of its group of places and are sorted
// first. A workgroup has WORKGROUP groups, or where a group is one place VECTORS times so many vectors of WIDTH elements. Groups
// with more than LIST updates are left out and noted as crowded; CROWDED is the place of their number.
#include "dtype.glsl"
#include "tensor.glsl"
#include "tensor_of.glsl"
#include "lists.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { TENSOR(R_VECTOR) tensor[]; };
layout(set = 0, binding = 1) readonly buffer Updates { R_VECTOR updates[]; };
layout(set = 0, binding = 2) writeonly buffer Result { R_VECTOR result[]; };
layout(set = 0, binding = 3) buffer Heads { uint heads[]; };
layout(set = 0, binding = 4) readonly buffer Next { uint next[]; };
layout(set = 0, binding = 5) writeonly buffer Crowded { uint crowded[]; };

// All in vectors.
PARAMS Params {
    uint count;
    uint part; // of a place
    NxvDivisor by_part;
    uint tensor_at;
    uint updates_at;
} params;

const uint NONE = 0xffffffffu;

// An entry is the number of an update times GROUP, plus which of the places it goes to.
R_VECTOR update(uint entry, uint within) {
    return nxv_load(updates, params.updates_at + entry / GROUP * params.part + within);
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
#define MERGE_16(a, b, c, d) \
    EXCHANGE(a.x, c.x) EXCHANGE(a.y, c.y) EXCHANGE(a.z, c.z) EXCHANGE(a.w, c.w) \
    EXCHANGE(b.x, d.x) EXCHANGE(b.y, d.y) EXCHANGE(b.z, d.z) EXCHANGE(b.w, d.w) \
    EXCHANGE(b.x, c.x) EXCHANGE(b.y, c.y) EXCHANGE(b.z, c.z) EXCHANGE(b.w, c.w) \
    EXCHANGE(a.z, b.x) EXCHANGE(a.w, b.y) EXCHANGE(b.z, c.x) EXCHANGE(b.w, c.y) EXCHANGE(c.z, d.x) EXCHANGE(c.w, d.y) \
    EXCHANGE(a.y, a.z) EXCHANGE(a.w, b.x) EXCHANGE(b.y, b.z) EXCHANGE(b.w, c.x) EXCHANGE(c.y, c.z) EXCHANGE(c.w, d.x) \
    EXCHANGE(d.y, d.z)
#define MERGE_8(a, b) \
    EXCHANGE(a.x, b.x) EXCHANGE(a.y, b.y) EXCHANGE(a.z, b.z) EXCHANGE(a.w, b.w) \
    EXCHANGE(a.z, b.x) EXCHANGE(a.w, b.y) \
    EXCHANGE(a.y, a.z) EXCHANGE(a.w, b.x) EXCHANGE(b.y, b.z)
#define TAKE_4(v, rest) \
    v.x = take(rest); \
    v.y = take(rest); \
    v.z = take(rest); \
    v.w = take(rest);

#if GROUP > 1

// Elements of a group are as many banks of shared memory apart as neighbours in the result do not share.
const uint APART = WORKGROUP + 32u / GROUP;
shared R_VALUE sums[GROUP * APART];
shared uint touched[WORKGROUP];

#define ADD(slot, loaded, found) \
    if (slot != NONE) { \
        sums[slot % GROUP * APART + gl_LocalInvocationIndex] += R_LOAD(loaded); \
        found |= 1u << (slot % GROUP); \
    }

// Loads come before the first sum.
uint add_four(uvec4 of) {
    uvec4 at = mix(of, uvec4(0), equal(of, uvec4(NONE)));
    R_STORAGE x = update(at.x, 0), y = update(at.y, 0), z = update(at.z, 0), w = update(at.w, 0);
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
    TAKE_4(v, rest)
    bool is_short = rest == 0u;
    SORT_4(v)
    if (is_short) return add_four(v);
    TAKE_4(w, rest)
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
        before[e] = TENSOR_AT(R_STORAGE, params.tensor_at + i);
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

R_VALUE sums[WIDTH];

void add(uint row, R_VECTOR loaded) {
    if (row == NONE) return;
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) sums[k] += R_LOAD(ELEMENT(loaded, k));
}

// Loads come before the first sum.
void add_four(uvec4 rows, uint within) {
    uvec4 at = mix(rows, rows.xxxx, equal(rows, uvec4(NONE)));
    R_VECTOR x = update(at.x, within), y = update(at.y, within), z = update(at.z, within), w = update(at.w, within);
    add(rows.x, x);
    add(rows.y, y);
    add(rows.z, z);
    add(rows.w, w);
}

// Whether a list is short enough to be added.
bool add_list(uint head, uint within) {
    uint rest = head;
    uvec4 a = uvec4(NONE), b, c, d;
    a.x = take(rest);
    if (rest == 0u) {
        add(a.x, update(a.x, within));
        return true;
    }
    a.y = take(rest);
    a.z = take(rest);
    a.w = take(rest);
    SORT_4(a)
    if (rest == 0u) {
        add_four(a, within);
        return true;
    }
    TAKE_4(b, rest)
    SORT_4(b)
    MERGE_8(a, b)
    if (rest == 0u) {
        add_four(a, within);
        add_four(b, within);
        return true;
    }
    TAKE_4(c, rest)
    TAKE_4(d, rest)
    if (rest == 0u) {
        SORT_4(c)
        SORT_4(d)
        MERGE_8(c, d)
        MERGE_16(a, b, c, d)
        add_four(a, within);
        add_four(b, within);
        add_four(c, within);
        if (d.x != NONE) add_four(d, within);
        return true;
    }
    uint sorted[LIST];
    uint count = sort_list(head, sorted);
    if (count == NONE) return false;
    for (uint i = 0u; i < count; ++i) add(sorted[i], update(sorted[i], within));
    return true;
}

// What a vector becomes that has updates.
void change(uint i) {
    uint place = nxv_divide(i, params.part, params.by_part);
    uint within = i - place * params.part;
    uint head = nxv_load(heads, place);
    if (head == CROWD) return;
    R_VECTOR vector = TENSOR_AT(R_VECTOR, params.tensor_at + i);
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) sums[k] = R_VALUE(0);
    if (!add_list(head, within)) {
        if (within == 0u) note_crowd(place);
        return;
    }
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
        R_VALUE changed = R_LOAD(ELEMENT(vector, k)) + sums[k];
        ELEMENT(vector, k) = R_STORE(changed);
    }
    nxv_store(result, i, vector);
}

// Most vectors of a large tensor are copied: all loads come before the first store.
void main() {
    uint first = nxv_workgroup() * WORKGROUP * VECTORS + gl_LocalInvocationIndex;
    uint head[VECTORS];
    R_VECTOR vector[VECTORS];
    uint changed = 0u;
    [[unroll]] for (uint e = 0; e < VECTORS; ++e) {
        uint i = min(first + e * WORKGROUP, params.count - 1u);
        head[e] = nxv_load(heads, nxv_divide(i, params.part, params.by_part));
        vector[e] = TENSOR_AT(R_VECTOR, params.tensor_at + i);
    }
    [[unroll]] for (uint e = 0; e < VECTORS; ++e) {
        uint i = first + e * WORKGROUP;
        if (i >= params.count) continue;
        if (head[e] == 0u) nxv_store(result, i, vector[e]);
        else changed |= 1u << e;
    }
    for (; changed != 0u; changed &= changed - 1u) change(first + uint(findLSB(changed)) * WORKGROUP);
}

#endif
