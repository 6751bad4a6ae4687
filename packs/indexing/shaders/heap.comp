#version 450
// Adds long lists, a workgroup each: up to SORTED updates are sorted, of more all updates are looked through in their order.
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
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

shared uint sorted[SORTED];
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

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint count = nxv_load(longs, 0u);
    for (uint id = nxv_workgroup(); id < count; id += params.groups) {
        uint place = nxv_load(longs, LONG_PLACE_AT(id));
        uint length = nxv_load(longs, LONG_LENGTH_AT(id));
        uint entries = 1u;
        while (entries < min(length, SORTED)) entries <<= 1;
        if (length <= SORTED) sort(nxv_load(longs, LONG_FIRST_AT(id)), length, entries);
        for (uint within = 0u; within < params.part; ++within) {
            R_VALUE sum = R_VALUE(0);
            if (length <= SORTED) {
                for (uint i = mine; i < length; i += WORKGROUP) sum += update(sorted[i], within);
            } else {
                for (uint row = mine; row < params.rows; row += WORKGROUP) {
                    if (number_of(row) == place) sum += update(row, within);
                }
            }
            exchanged[mine] = sum;
            barrier(); // every sum is there before they are added
            if (mine == 0u) {
                for (uint other = 1u; other < WORKGROUP; ++other) sum += exchanged[other];
                uint i = place * params.part + within;
                nxv_store(result, i, R_STORE(R_LOAD(nxv_load(tensor, params.tensor_at + i)) + sum));
            }
            barrier(); // they are added before the next ones take their place
        }
    }
}
