#version 450
// The places of a bucket, a workgroup each bucket: its records are taken from every chunk, up to SLOTS at a time, and linked by
// their places. Where a list is long, all of them are sorted.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { R_STORAGE tensor[]; };
layout(set = 0, binding = 1) writeonly buffer Result { R_STORAGE result[]; };
layout(set = 0, binding = 2) readonly buffer Records { uvec2 records[]; };
layout(set = 0, binding = 3) readonly buffer Table { uint table[]; };

PARAMS Params {
    uint places;
    uint tensor_at;
    uint chunks;
} params;

const uint ITEMS = SLOTS / WORKGROUP;
const uint OWN = (PLACES + WORKGROUP - 1) / WORKGROUP;
const uint NEXT = (1u << NEXT_BITS) - 1u;
const uint PLACE_AT = 32u - NEXT_BITS;

// The number of an update times 2^NEXT_BITS plus the slot behind the next one of its place, or 0; and its bits.
shared uvec2 sorted[SLOTS];
// The slot behind the first one of each place, or 0, and then what these come to.
shared uint heads[OWN * WORKGROUP];
// Of each chunk: how many records come before it, and where these would begin if they were its own. Behind the last: all.
shared uint begins[CHUNKS + 1];
shared uint froms[CHUNKS];
shared uint is_long;

#include "deal.glsl"
#define SORTED SLOTS
#include "bitonic.glsl"

uint count_records(uint bucket) {
    uint own = gl_LocalInvocationIndex;
    const uint each = CHUNKS > WORKGROUP ? CHUNKS / WORKGROUP : 1;
    uint entries[each];
    uint total = 0u;
    [[unroll]] for (uint k = 0; k < each; ++k) {
        uint chunk = own * each + k;
        entries[k] = chunk < params.chunks ? nxv_load(table, chunk * BUCKETS + bucket) : 0u;
    }
    [[unroll]] for (uint k = 0; k < each; ++k) total += entries[k] >> 16;
    uint all;
    uint begin = sum_before(total, all);
    [[unroll]] for (uint k = 0; k < each; ++k) {
        uint chunk = own * each + k;
        if (chunk >= CHUNKS) break;
        begins[chunk] = begin;
        froms[chunk] = chunk * CHUNK + (entries[k] & 0xffffu) - begin;
        begin += entries[k] >> 16;
    }
    if (own == 0u) begins[CHUNKS] = all;
    return all;
}

// The chunk of a record is the last that begins at it or before.
uint chunk_of(uint record) {
    uint chunk = 0u;
    [[unroll]] for (uint apart = CHUNKS / 2u; apart > 0u; apart >>= 1) {
        if (begins[chunk + apart] <= record) chunk += apart;
    }
    return chunk;
}

// How many records from `start` on are linked at once: those of whole chunks, since chance has a say in where a chunk has each
// of a bucket. One that has more than SLOTS of them has one of each place, and is alone.
uint next_records(uint start, uint count) {
    if (count <= SLOTS) return count;
    uint chunk = chunk_of(start);
    uint last = start + SLOTS < count ? chunk_of(start + SLOTS) : CHUNKS;
    bool is_whole = begins[chunk] == start && last > chunk;
    return is_whole ? begins[last] - start : min(begins[chunk + 1u] - start, SLOTS);
}

// Takes the records from `start` on: their places in the bucket, the numbers of their updates, and bits.
void take_records(uint start, uint end, out uvec3 taken[ITEMS]) {
    uint own = gl_LocalInvocationIndex;
    // The chunk of each record is the last that begins at it or before.
    uint chunks[ITEMS];
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) chunks[e] = 0u;
    [[unroll]] for (uint apart = CHUNKS / 2u; apart > 0u; apart >>= 1) {
        [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
            if (begins[chunks[e] + apart] <= start + min(e * WORKGROUP + own, end - 1u)) chunks[e] += apart;
        }
    }
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uvec2 record = nxv_load(records, froms[chunks[e]] + start + min(e * WORKGROUP + own, end - 1u));
        uint row = chunks[e] * CHUNK + (record.x & ((1u << ROW_BITS) - 1u));
        taken[e] = uvec3(record.x >> ROW_BITS, row, record.y);
    }
}

void link_records(uint start, uint end) {
    uvec3 taken[ITEMS];
    take_records(start, end, taken);
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + gl_LocalInvocationIndex;
        if (i < end) sorted[i] = uvec2(taken[e].y << NEXT_BITS | atomicExchange(heads[taken[e].x], i + 1u), taken[e].z);
    }
}

// What a list of more than two comes to.
uint join_list(uvec2 head) {
    uint length = 1u;
    for (uvec2 at = head; (at.x & NEXT) != 0u && length <= SHORT; at = sorted[(at.x & NEXT) - 1u]) ++length;
    if (length > SHORT) {
        is_long = 1u;
        return 0u;
    }
    R_VALUE sum;
    uint done = 0u;
    for (uint k = 0u; k < length; ++k) {
        uvec2 least = uvec2(0xffffffffu);
        for (uvec2 at = head;; at = sorted[(at.x & NEXT) - 1u]) {
            if (at.x < least.x && (k == 0u || at.x > done)) least = at;
            if ((at.x & NEXT) == 0u) break;
        }
        done = least.x;
        sum = k == 0u ? VALUE(least.y) : JOIN(sum, VALUE(least.y));
    }
    return BITS(sum);
}

// Puts what lists come to in place of their heads; a bit for each that there is.
uint join_lists() {
    uint own = gl_LocalInvocationIndex;
    uint found = 0u;
    uint longer = 0u;
    [[unroll]] for (uint e = 0; e < OWN; ++e) {
        uint head = heads[e * WORKGROUP + own];
        if (head == 0u) continue;
        found |= 1u << e;
        uvec2 first = sorted[head - 1u];
        uint next = first.x & NEXT;
        if (next != 0u) {
            uvec2 second = sorted[next - 1u];
            if ((second.x & NEXT) != 0u) {
                longer |= 1u << e;
                continue;
            }
            bool is_before = first.x < second.x;
            R_VALUE a = VALUE(is_before ? first.y : second.y);
            R_VALUE b = VALUE(is_before ? second.y : first.y);
            R_VALUE sum = JOIN(a, b);
            first.y = BITS(sum);
        }
        heads[e * WORKGROUP + own] = first.y;
    }
    for (; longer != 0u; longer &= longer - 1u) {
        uint within = uint(findLSB(longer)) * WORKGROUP + own;
        heads[within] = join_list(sorted[heads[within] - 1u]);
    }
    return found;
}

// The same for all records from `start` on by a sort.
void join_sorted(uint start, uint end) {
    uint own = gl_LocalInvocationIndex;
    uvec3 taken[ITEMS];
    take_records(start, end, taken);
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + own;
        sorted[i] = i < end ? uvec2(taken[e].x << PLACE_AT | taken[e].y, taken[e].z) : uvec2(0xffffffffu);
    }
    barrier(); // all are there before two are compared
    sort();
    for (uint i = own; i < end; i += WORKGROUP) {
        uint place = sorted[i].x >> PLACE_AT;
        if (i > 0u && sorted[i - 1u].x >> PLACE_AT == place) continue;
        R_VALUE sum = VALUE(sorted[i].y);
        for (uint k = i + 1u; k < end && sorted[k].x >> PLACE_AT == place; ++k) sum = JOIN(sum, VALUE(sorted[k].y));
        heads[place] = BITS(sum);
    }
    barrier(); // what places come to is there
}

void main() {
    uint own = gl_LocalInvocationIndex;
    uint bucket = nxv_workgroup();
    if (bucket >= BUCKETS) return;
    R_STORAGE before[OWN];
    R_VALUE sums[OWN];
    uint touched = 0u;
    [[unroll]] for (uint e = 0; e < OWN; ++e) {
        uint place = min(place_in(bucket, e * WORKGROUP + own), params.places - 1u);
        before[e] = nxv_load(tensor, params.tensor_at + place);
        heads[e * WORKGROUP + own] = 0u;
    }
    uint count = count_records(bucket);
    uint end;
    for (uint start = 0u; start < count; start += end) {
        if (own == 0u) is_long = 0u;
        barrier(); // the chunks are known, and lists are empty
        end = next_records(start, count);
        link_records(start, end);
        barrier(); // lists are complete
        uint found = join_lists();
        barrier(); // it is known whether one is long, and lists were followed
        if (is_long == 1u) join_sorted(start, end);
        [[unroll]] for (uint e = 0; e < OWN; ++e) {
            if ((found >> e & 1u) == 0u) continue;
            R_VALUE sum = VALUE(heads[e * WORKGROUP + own]);
            heads[e * WORKGROUP + own] = 0u;
            sums[e] = (touched >> e & 1u) == 0u ? sum : JOIN(sums[e], sum);
        }
        touched |= found;
        barrier(); // all know whether a list was long
    }
    [[unroll]] for (uint e = 0; e < OWN; ++e) {
        uint within = e * WORKGROUP + own;
        uint place = place_in(bucket, within);
        if (within >= PLACES || place >= params.places) continue;
        R_VALUE changed = JOIN(R_LOAD(before[e]), sums[e]);
        R_STORAGE stored = R_STORE(changed);
        if ((touched >> e & 1u) == 0u) stored = before[e];
        nxv_store(result, place, stored);
    }
}
