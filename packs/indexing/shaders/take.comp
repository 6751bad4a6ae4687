#version 450
// The places of a bucket, a workgroup each bucket: its records are taken from every chunk, up to SLOTS at a time, and linked by
// their places. Where a list is long, all of them are sorted.
#include "dtype.glsl"
#include "tensor.glsl"
#include "tensor_of.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { TENSOR(R_VECTOR) tensor[]; };
layout(set = 0, binding = 1) writeonly buffer Result { R_VECTOR result[]; };
layout(set = 0, binding = 2) readonly buffer Records { uvec2 records[]; };
layout(set = 0, binding = 3) readonly buffer Table { uint table[]; };

PARAMS Params {
    uint places;
    uint tensor_at;
    uint chunks;
} params;

const uint ITEMS = SLOTS / WORKGROUP;
// Vectors of places that are an invocation's.
const uint OWN = (PLACES + WORKGROUP * WIDTH - 1) / (WORKGROUP * WIDTH);
const uint APART = OWN * WORKGROUP;
const uint NEXT = (1u << NEXT_BITS) - 1u;
const uint PLACE_AT = 32u - NEXT_BITS;

// The number of an update times 2^NEXT_BITS plus the slot behind the next one of its place, or 0; and its bits.
shared uvec2 sorted[SLOTS];
// The slot behind the first one of each place, or 0. Elements of a vector are APART, so that neighbours lie in other banks.
shared uint heads[APART * WIDTH];
#define HEAD_OF(within) ((within) % WIDTH * APART + (within) / WIDTH)

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

// A record: its place in the bucket, update and bits.
uvec3 record_of(uint number) {
    uint chunk = chunk_of(number);
    uvec2 record = nxv_load(records, froms[chunk] + number);
    return uvec3(record.x >> ROW_BITS, chunk << ROW_BITS | record.x & ((1u << ROW_BITS) - 1u), record.y);
}

// Takes the records from `start` on, and tells where the heads of the places of this invocation's are.
void link_records(uint start, uint end, out uint head[ITEMS]) {
    uvec3 taken[ITEMS];
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        if (e * WORKGROUP < end) taken[e] = record_of(start + min(e * WORKGROUP + gl_LocalInvocationIndex, end - 1u));
    }
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + gl_LocalInvocationIndex;
        head[e] = HEAD_OF(taken[e].x);
        if (i < end) sorted[i] = uvec2(taken[e].y << NEXT_BITS | atomicExchange(heads[head[e]], i + 1u), taken[e].z);
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

// Puts what lists come to into their first slots.
void join_lists(uint end, uint head[ITEMS]) {
    uint own = gl_LocalInvocationIndex;
    uint longer = 0u;
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + own;
        if (i >= end || heads[head[e]] != i + 1u) continue;
        uvec2 first = sorted[i];
        uint next = first.x & NEXT;
        if (next == 0u) continue;
        uvec2 second = sorted[next - 1u];
        if ((second.x & NEXT) != 0u) {
            longer |= 1u << e;
            continue;
        }
        bool is_before = first.x < second.x;
        R_VALUE a = VALUE(is_before ? first.y : second.y);
        R_VALUE b = VALUE(is_before ? second.y : first.y);
        R_VALUE sum = JOIN(a, b);
        sorted[i].y = BITS(sum);
    }
    for (; longer != 0u; longer &= longer - 1u) {
        uint i = uint(findLSB(longer)) * WORKGROUP + own;
        sorted[i].y = join_list(sorted[i]);
    }
}

// The same for all records from `start` on by a sort.
void join_sorted(uint start, uint end) {
    uint own = gl_LocalInvocationIndex;
    uvec2 taken[ITEMS];
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) {
        uint i = e * WORKGROUP + own;
        taken[e] = uvec2(0xffffffffu);
        if (i >= end) continue;
        uvec3 record = record_of(start + i);
        taken[e] = uvec2(record.x << PLACE_AT | record.y, record.z);
    }
    [[unroll]] for (uint e = 0; e < ITEMS; ++e) sorted[e * WORKGROUP + own] = taken[e];
    barrier(); // all are there before two are compared
    sort();
    for (uint i = own; i < end; i += WORKGROUP) {
        uint place = sorted[i].x >> PLACE_AT;
        if (i > 0u && sorted[i - 1u].x >> PLACE_AT == place) continue;
        R_VALUE sum = VALUE(sorted[i].y);
        for (uint k = i + 1u; k < end && sorted[k].x >> PLACE_AT == place; ++k) sum = JOIN(sum, VALUE(sorted[k].y));
        sorted[i].y = BITS(sum);
        heads[HEAD_OF(place)] = i + 1u;
    }
    barrier(); // what places come to is there
}

void main() {
    uint own = gl_LocalInvocationIndex;
    uint bucket = nxv_workgroup();
    if (bucket >= BUCKETS) return;
    [[unroll]] for (uint i = 0; i < OWN * WIDTH; ++i) heads[i * WORKGROUP + own] = 0u;
    uint count = count_records(bucket);
    R_VALUE sums[OWN * WIDTH];
    uint touched = 0u;
    uint end;
    for (uint start = 0u; start < count; start += end) {
        uint head[ITEMS];
        barrier(); // the chunks are known, and lists are empty
        if (own == 0u) is_long = 0u;
        end = next_records(start, count);
        link_records(start, end, head);
        barrier(); // lists are complete
        join_lists(end, head);
        barrier(); // it is known whether one is long, and what the others come to
        if (is_long == 1u) join_sorted(start, end);
        [[unroll]] for (uint i = 0; i < OWN * WIDTH; ++i) {
            uint first = heads[i * WORKGROUP + own];
            if (first == 0u) continue;
            heads[i * WORKGROUP + own] = 0u;
            R_VALUE sum = VALUE(sorted[first - 1u].y);
            sums[i] = (touched >> i & 1u) == 0u ? sum : JOIN(sums[i], sum);
            touched |= 1u << i;
        }
    }
    [[unroll]] for (uint e = 0; e < OWN; ++e) {
        uint within = (e * WORKGROUP + own) * WIDTH;
        uint place = place_in(bucket, within);
        if (within >= PLACES || place >= params.places) continue;
        R_VECTOR vector = TENSOR_AT(R_VECTOR, (params.tensor_at + place) / WIDTH);
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
            // Elements of a vector lie as their heads do.
            uint i = k * OWN + e;
            if ((touched >> i & 1u) == 0u) continue;
            R_VALUE changed = JOIN(R_LOAD(ELEMENT(vector, k)), sums[i]);
            ELEMENT(vector, k) = R_STORE(changed);
        }
        nxv_store(result, place / WIDTH, vector);
    }
}
