#version 450
// Deals updates to the buckets of their places, a workgroup CHUNK of them: in its part of the records those of a bucket come
// behind each other, and the table says where. Where many go to one bucket, those of one place become one.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"

// Records, or what they are made of.
shared uvec2 sorted[CHUNK];
#include "deal.glsl"
#define SORTED CHUNK
#include "bitonic.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) writeonly buffer Records { uvec2 records[]; };
layout(set = 0, binding = 1) writeonly buffer Table { uint table[]; };
layout(set = 0, binding = 2) readonly buffer Updates { R_STORAGE updates[]; };

PARAMS Params {
    uint rows;
    uint updates_at;
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

const uint NOWHERE = 0xffffffffu;
const uint ITEMS = CHUNK / WORKGROUP;
const uint COUNTS = BUCKETS > WORKGROUP ? BUCKETS : WORKGROUP;

// Of each bucket: how many there are, then that times 2^16 plus where they begin.
shared uint counts[COUNTS];
shared R_VALUE sums[(CHUNK + RUN - 1) / RUN];
shared uint most;

// Where an item goes, if anywhere, and what it adds. `at` is where it lies among those of its bucket.
uint bucket[ITEMS];
uint within[ITEMS];
uint number[ITEMS];
R_VALUE value[ITEMS];
uint at[ITEMS];

// Loads of one kind come before the first use of any. Beyond the end the last update is loaded again.
void load_items(uint first) {
    uint rows[ITEMS];
    uint places[ITEMS];
    R_STORAGE loaded[ITEMS];
    bool is_fault = false;
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        rows[e] = min(first + e * WORKGROUP + gl_LocalInvocationIndex, params.rows - 1u);
        places[e] = 0u;
    }
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) loaded[e] = nxv_load(updates, params.updates_at + rows[e]);
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        uvec2 words[ITEMS];
        [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
            words[e] = index_words(k, params.index + rows[e] * params.step, params.components[k]);
        }
        [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
            places[e] += index_in(words[e], params.components[k], is_fault) * params.components[k].number;
        }
    }
    nxv_fault(is_fault);
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        bool is_there = first + e * WORKGROUP + gl_LocalInvocationIndex < params.rows;
        bucket[e] = is_there ? bucket_of(places[e]) : NOWHERE;
        within[e] = within_bucket(places[e]);
        number[e] = e * WORKGROUP + gl_LocalInvocationIndex;
        value[e] = R_LOAD(loaded[e]);
    }
}

// Counts the items of each bucket; how many there are.
uint count_items() {
    uint own = gl_LocalInvocationIndex;
    const uint each = COUNTS / WORKGROUP;
    for (uint i = own; i < COUNTS; i += WORKGROUP) counts[i] = 0u;
    if (own == 0u) most = 0u;
    barrier(); // the zeros come before what is counted
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        if (bucket[e] != NOWHERE) at[e] = atomicAdd(counts[bucket[e]], 1u);
    }
    barrier(); // all is counted
    uint found[each];
    uint total = 0u;
    uint largest = 0u;
    [[unroll]] for (uint k = 0; k < each; ++k) {
        found[k] = counts[own * each + k];
        total += found[k];
        largest = max(largest, found[k]);
    }
    if (largest > CROWD) atomicMax(most, largest);
    uint all;
    uint begin = sum_before(total, all);
    [[unroll]] for (uint k = 0; k < each; ++k) {
        counts[own * each + k] = found[k] << 16 | begin;
        begin += found[k];
    }
    barrier(); // it is known where buckets begin
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        if (bucket[e] != NOWHERE) at[e] += counts[bucket[e]] & 0xffffu;
    }
    return all;
}

// One item of each place, with what its updates come to in their order.
void join_items(uint first) {
    uint own = gl_LocalInvocationIndex;
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + own;
        sorted[i] = uvec2(bucket[e] == NOWHERE ? NOWHERE : bucket[e] * PLACES + within[e], i);
    }
    barrier(); // every key is there before two are compared
    sort();
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + own;
        uint place = sorted[i].x;
        bool is_first = i == 0u || sorted[max(i, 1u) - 1u].x != place;
        bucket[e] = is_first ? place : NOWHERE;
        if (place == NOWHERE || !(is_first || i % RUN == 0u)) continue;
        R_VALUE sum = R_LOAD(nxv_load(updates, params.updates_at + first + sorted[i].y));
        uint end = min((i / RUN + 1u) * RUN, CHUNK);
        for (uint next = i + 1u; next < end && sorted[next].x == place; ++next) {
            R_VALUE more = R_LOAD(nxv_load(updates, params.updates_at + first + sorted[next].y));
            sum = JOIN(sum, more);
        }
        value[e] = sum;
        if (i % RUN == 0u) sums[i / RUN] = sum;
    }
    barrier(); // the sums of all runs are there
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + own;
        uint place = bucket[e];
        if (place == NOWHERE) continue;
        for (uint next = (i / RUN + 1u) * RUN; next < CHUNK && sorted[next].x == place; next += RUN) {
            value[e] = JOIN(value[e], sums[next / RUN]);
        }
        bucket[e] = place / PLACES;
        within[e] = place % PLACES;
        number[e] = sorted[i].y;
    }
}

void main() {
    uint own = gl_LocalInvocationIndex;
    uint chunk = nxv_workgroup();
    uint first = chunk * CHUNK;
    if (first >= params.rows) return;
    load_items(first);
    uint count = count_items();
    if (most > CROWD) {
        join_items(first);
        count = count_items();
    }
    for (uint i = own; i < BUCKETS; i += WORKGROUP) nxv_store(table, chunk * BUCKETS + i, counts[i]);
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        if (bucket[e] != NOWHERE) sorted[at[e]] = uvec2(within[e] << ROW_BITS | number[e], BITS(value[e]));
    }
    barrier(); // the records are in order
    for (uint i = own; i < count; i += WORKGROUP) nxv_store(records, first + i, sorted[i]);
}
