#version 450
// The elements of the result, each with the sum of its updates in their order, or with the last one of them where KEEPS_LAST is
// defined. Every workgroup looks through the indices of all updates, of which there are at most MOST, and notes those of its places.
#include "dtype.glsl"
#include "tensor.glsl"
#include "tensor_of.glsl"
#include "indices.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { TENSOR(R_VECTOR) tensor[]; };
layout(set = 0, binding = 1) readonly buffer Updates { R_VECTOR updates[]; };
layout(set = 0, binding = 2) writeonly buffer Result { R_VECTOR result[]; };

// All but what concerns indices in vectors.
PARAMS Params {
    uint count;
    uint part; // of a place
    NxvDivisor by_part;
    uint tensor_at;
    uint updates_at;
    uint rows;
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

const uint NONE = 0xffffffffu;

// By update its place, and which of them go to places of the workgroup, a bit each.
shared uint places[MOST];
shared uint noted[MOST / 32];

uint place_of(uint row) {
    uint place = 0u;
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        uint index = index_of(k, params.index + row * params.step, params.components[k]);
        place += index * params.components[k].number;
    }
    return place;
}

R_VECTOR update(uint row, uint within) { return nxv_load(updates, params.updates_at + row * params.part + within); }

#ifdef KEEPS_LAST

R_VECTOR changed(R_VECTOR vector, uint place, uint within) {
    uint last = NONE;
    for (uint word = 0u; word < MOST / 32u; ++word) {
        for (uint bits = noted[word]; bits != 0u; bits &= bits - 1u) {
            uint row = word * 32u + uint(findLSB(bits));
            if (places[row] == place) last = row;
        }
    }
    if (last != NONE) vector = update(last, within);
    return vector;
}

#else

R_VALUE sums[WIDTH];

void add(uint row, R_VECTOR loaded) {
    if (row == NONE) return;
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) sums[k] += R_LOAD(ELEMENT(loaded, k));
}

// Loads come before the first sum.
void add_four(uvec4 rows, uint within) {
    uvec4 at = mix(rows, rows.wwww, equal(rows, uvec4(NONE)));
    R_VECTOR x = update(at.x, within), y = update(at.y, within), z = update(at.z, within), w = update(at.w, within);
    add(rows.x, x);
    add(rows.y, y);
    add(rows.z, z);
    add(rows.w, w);
}

R_VECTOR changed(R_VECTOR vector, uint place, uint within) {
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) sums[k] = R_LOAD(ELEMENT(vector, k));
    bool is_touched = false;
    uvec4 next = uvec4(NONE);
    for (uint word = 0u; word < MOST / 32u; ++word) {
        for (uint bits = noted[word]; bits != 0u; bits &= bits - 1u) {
            uint row = word * 32u + uint(findLSB(bits));
            if (places[row] != place) continue;
            is_touched = true;
            next = uvec4(next.yzw, row);
            if (next.x == NONE) continue;
            add_four(next, within);
            next = uvec4(NONE);
        }
    }
    if (next.w != NONE) add_four(next, within);
    // What has no update keeps its bits.
    if (is_touched) {
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) ELEMENT(vector, k) = R_STORE(sums[k]);
    }
    return vector;
}

#endif

void main() {
    uint own = gl_LocalInvocationIndex;
    uint first = nxv_workgroup() * WORKGROUP * VECTORS;
    if (first >= params.count) return;
    uint last = min(first + WORKGROUP * VECTORS, params.count) - 1u;
    uint low = nxv_divide(first, params.part, params.by_part);
    uint high = nxv_divide(last, params.part, params.by_part);
    R_VECTOR vector[VECTORS];
    [[unroll]] for (uint e = 0; e < VECTORS; ++e) {
        vector[e] = TENSOR_AT(R_VECTOR, params.tensor_at + min(first + e * WORKGROUP + own, last));
    }
    for (uint word = own; word < MOST / 32u; word += WORKGROUP) noted[word] = 0u;
    barrier();
    for (uint row = own; row < params.rows; row += WORKGROUP) {
        uint place = place_of(row);
        places[row] = place;
        if (low <= place && place <= high) atomicOr(noted[row / 32u], 1u << (row % 32u));
    }
    barrier();
    [[unroll]] for (uint e = 0; e < VECTORS; ++e) {
        uint i = first + e * WORKGROUP + own;
        if (i > last) continue;
        uint place = nxv_divide(i, params.part, params.by_part);
        nxv_store(result, i, changed(vector[e], place, i - place * params.part));
    }
}
