#version 450
// Adds what the chunks have of each place, in their order, a workgroup so many elements of each place as it has lanes: of crowded
// groups with CROWDED, else of all. Invocations look for the place in one chunk each, and then share out elements and chunks.
#include "dtype.glsl"
#include "tensor.glsl"
#include "tensor_of.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Tensor { R_STORAGE tensor[]; };
layout(set = 0, binding = 1) writeonly buffer Result { R_STORAGE result[]; };
layout(set = 0, binding = 2) readonly buffer Places { uint places[]; };
layout(set = 0, binding = 3) readonly buffer Sums { R_VALUE sums[]; };
#ifdef CROWDED
layout(set = 0, binding = 4) readonly buffer Heads { uint heads[]; };
layout(set = 0, binding = 5) readonly buffer Groups { uint crowded[]; };
#else
layout(set = 0, binding = 4) readonly buffer Beginnings { uint beginnings[]; };
#endif

PARAMS Params {
    uint places; // of the result
    uint part;
    uint chunks;
    uint groups;
    uint lanes; // a power of two
    uint tiles; // workgroups of a place
    NxvDivisor by_tiles;
    uint tensor_at;
} params;

const uint NOWHERE = 0xffffffffu;

shared uint found[WORKGROUP];
shared R_VALUE exchanged[WORKGROUP];
shared uint is_found;

// The first of the sorted updates of a chunk that goes to `place`.
uint find(uint chunk, uint place) {
    uint first = chunk * CHUNK;
#ifdef CROWDED
    uint low = first;
    uint high = first + CHUNK;
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (nxv_load(places, middle) < place) low = middle + 1u;
        else high = middle;
    }
    return low < first + CHUNK && nxv_load(places, low) == place ? low : NOWHERE;
#else
    uint at = nxv_load(beginnings, chunk * params.places + place);
    return at == NOWHERE ? NOWHERE : first + at;
#endif
}

R_VALUE sum_of(uint at, uint place, uint within) {
    R_VALUE sum = nxv_load(sums, at * params.part + within);
    uint end = (at / CHUNK + 1u) * CHUNK;
    for (at = (at / RUN + 1u) * RUN; at < end && nxv_load(places, at) == place; at += RUN) {
        sum += nxv_load(sums, at * params.part + within);
    }
    return sum;
}

void add_place(uint place, uint tile) {
    uint own = gl_LocalInvocationIndex;
    uint within = tile * params.lanes + own % params.lanes;
    R_VALUE sum = R_VALUE(0);
    if (own == 0u) is_found = 0u;
    for (uint first = 0u; first < params.chunks; first += WORKGROUP) {
        barrier(); // what was found before is added, and the mark is 0
        uint chunk = first + own;
        found[own] = chunk < params.chunks ? find(chunk, place) : NOWHERE;
        if (found[own] != NOWHERE) is_found = 1u;
        barrier(); // it is known where all of these chunks have the place
        if (within >= params.part) continue;
        for (uint i = own / params.lanes; i < WORKGROUP; i += WORKGROUP / params.lanes) {
            if (found[i] != NOWHERE) sum += sum_of(found[i], place, within);
        }
    }
    exchanged[own] = sum;
    for (uint apart = WORKGROUP / 2u; apart >= params.lanes; apart >>= 1) {
        barrier(); // every share, or sum of two, is there before it is added
        if (own < apart) {
            sum += exchanged[own + apart];
            exchanged[own] = sum;
        }
    }
    if (own < params.lanes && within < params.part) {
        uint i = place * params.part + within;
        R_STORAGE value = TENSOR_AT(R_STORAGE, params.tensor_at + i);
        if (is_found == 1u) value = R_STORE(R_LOAD(value) + sum);
        nxv_store(result, i, value);
    }
    barrier(); // shares and marks are used before those of the next place take their place
}

void main() {
#ifdef CROWDED
    uint count = nxv_load(heads, CROWDED) * GROUP;
#else
    uint count = params.places;
#endif
    for (uint id = nxv_workgroup(); id < count * params.tiles; id += params.groups) {
        uint place = nxv_divide(id, params.tiles, params.by_tiles);
        uint tile = id - place * params.tiles;
#ifdef CROWDED
        place = nxv_load(crowded, place / GROUP) * GROUP + place % GROUP;
#endif
        if (place < params.places) add_place(place, tile);
    }
}
