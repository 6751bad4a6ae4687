#version 450
// Adds long lists, a workgroup each: up to SORTED updates are sorted; for more of them all updates are looked through in their
// order. Invocations share out the elements of a place, and the list where there are fewer of them.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"
#include "lists.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { R_STORAGE tensor[]; };
layout(set = 0, binding = 1) readonly buffer Updates { R_STORAGE updates[]; };
layout(set = 0, binding = 2) writeonly buffer Result { R_STORAGE result[]; };
layout(set = 0, binding = 4) readonly buffer Longs { uint longs[]; };
layout(set = 0, binding = 5) readonly buffer Collected { uint collected[]; };

PARAMS Params {
    uint rows;
    uint part;
    uint tensor_at;
    uint updates_at;
    uint groups;
    uint lanes; // invocations for the elements of a place: a power of two
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

shared uint sorted[SORTED];
shared uint found[2][WORKGROUP];
shared R_VALUE exchanged[WORKGROUP];

uint number_of(uint row) {
    uint number = 0u;
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        number += index_of(k, params.index + row * params.step, params.components[k]) * params.components[k].number;
    }
    return number;
}

R_VALUE update(uint row, uint within) {
    return R_LOAD(nxv_load(updates, params.updates_at + row * params.part + within));
}

// Bitonic (Batcher 1968), over a power of two of entries.
void sort(uint first, uint length, uint entries) {
    uint mine = gl_LocalInvocationIndex;
    for (uint i = mine; i < entries; i += WORKGROUP) {
        sorted[i] = i < length ? nxv_load(collected, first + i) : 0xffffffffu;
    }
    barrier(); // every entry is there before two are compared
    for (uint run = 2u; run <= entries; run <<= 1) {
        for (uint apart = run >> 1; apart > 0u; apart >>= 1) {
            for (uint i = mine; i < entries / 2u; i += WORKGROUP) {
                uint low = ((i & ~(apart - 1u)) << 1) | (i & (apart - 1u));
                uint a = sorted[low];
                uint b = sorted[low + apart];
                if ((b < a) == ((low & run) == 0u)) {
                    sorted[low] = b;
                    sorted[low + apart] = a;
                }
            }
            barrier(); // a round is over before the next one reads what it exchanged
        }
    }
}

// Puts those of the SORTED updates from `first` on that go to `place` into `sorted`, in their order; their number.
uint choose(uint first, uint place) {
    const uint items = SORTED / WORKGROUP;
    uint mine = gl_LocalInvocationIndex;
    uint own = 0u;
    uint flags = 0u;
    for (uint k = 0u; k < items; ++k) {
        uint row = first + mine * items + k;
        if (row < params.rows && number_of(row) == place) {
            flags |= 1u << k;
            own += 1u;
        }
    }
    uint now = 0u;
    uint sum = own;
    found[now][mine] = sum;
    barrier(); // every number is there before it is read
    for (uint apart = 1u; apart < WORKGROUP; apart <<= 1) {
        if (mine >= apart) sum += found[now][mine - apart];
        now ^= 1u;
        found[now][mine] = sum;
        barrier(); // as above; the other half is free again
    }
    uint at = sum - own;
    for (uint k = 0u; k < items; ++k) {
        if ((flags >> k & 1u) == 1u) sorted[at++] = first + mine * items + k;
    }
    uint count = found[now][WORKGROUP - 1u];
    barrier(); // all are there before they are added
    return count;
}

// The sum of this invocation's share of the sorted updates.
R_VALUE share(uint count, uint within) {
    R_VALUE sum = R_VALUE(0);
    if (within >= params.part) return sum;
    for (uint i = gl_LocalInvocationIndex / params.lanes; i < count; i += WORKGROUP / params.lanes) {
        sum += update(sorted[i], within);
    }
    return sum;
}

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint within = mine % params.lanes;
    uint count = nxv_load(longs, 0u);
    for (uint id = nxv_workgroup(); id < count; id += params.groups) {
        uint place = nxv_load(longs, LONG_PLACE_AT(id));
        uint length = nxv_load(longs, LONG_LENGTH_AT(id));
        R_VALUE sum = R_VALUE(0);
        if (length <= SORTED) {
            uint entries = 1u;
            while (entries < length) entries <<= 1;
            sort(nxv_load(longs, LONG_FIRST_AT(id)), length, entries);
            sum = share(length, within);
        } else {
            for (uint first = 0u; first < params.rows; first += SORTED) {
                sum += share(choose(first, place), within);
                barrier(); // all are added before others take their place
            }
        }
        exchanged[mine] = sum;
        for (uint apart = WORKGROUP / 2u; apart >= params.lanes; apart >>= 1) {
            barrier(); // every share, or sum of two, is there before it is added
            if (mine < apart) {
                sum += exchanged[mine + apart];
                exchanged[mine] = sum;
            }
        }
        if (mine < params.part) {
            uint i = place * params.part + mine;
            nxv_store(result, i, R_STORE(R_LOAD(nxv_load(tensor, params.tensor_at + i)) + sum));
        }
        barrier(); // they are added before those of the next list take their place
    }
}
