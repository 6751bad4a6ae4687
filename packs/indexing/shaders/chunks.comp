#version 450
// Sums of the updates of one place in chunks of CHUNK updates, a workgroup each: they are sorted by their places, and those of
// one place summed up to RUN at a time. Wide places are in tiles, and workgroups sum the updates of a chunk for one of them. With
// CROWDED only the places of crowded groups count, of which there are none most of the time; else it is noted where those of
// each place begin. NARROW is for few places.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) writeonly buffer Places { uint places[]; };
layout(set = 0, binding = 1) writeonly buffer Sums { R_VALUE sums[]; };
layout(set = 0, binding = 2) readonly buffer Updates { R_STORAGE updates[]; };
#ifdef CROWDED
#include "lists.glsl"
layout(set = 0, binding = 4) readonly buffer Heads { uint heads[]; };
#else
layout(set = 0, binding = 4) writeonly buffer Beginnings { uint beginnings[]; };
#endif

PARAMS Params {
    uint rows;
    uint places;
    uint part;
    uint tile; // elements of a tile
    NxvDivisor by_tile;
    uint tiles;
    NxvDivisor by_tiles;
    uint updates_at;
    uint index;
    uint step;
    Component components[COMPONENTS];
} params;

const uint NOWHERE = 0xffffffffu;

// Keys are the place and the number within the chunk.
#ifdef NARROW
#define KEY uint
#define KEY_OF(place, at) ((place) * CHUNK + (at))
#define PLACE_OF(key) ((key) / CHUNK)
#define NUMBER_OF(key) ((key) % CHUNK)
#define NO_PLACE PLACE_OF(NOWHERE)
bool is_below(KEY a, KEY b) { return a < b; }
#else
#define KEY uvec2
#define KEY_OF(place, at) uvec2(place, at)
#define PLACE_OF(key) (key).x
#define NUMBER_OF(key) (key).y
#define NO_PLACE NOWHERE
bool is_below(KEY a, KEY b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }
#endif

shared KEY sorted[CHUNK];

KEY key_of(uint row, uint at) {
    if (row >= params.rows) return KEY_OF(NO_PLACE, at);
    uint number = 0u;
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        number += index_of(k, params.index + row * params.step, params.components[k]) * params.components[k].number;
    }
#ifdef CROWDED
    if (nxv_load(heads, number / GROUP) != CROWD) number = NO_PLACE;
#endif
    return KEY_OF(number, at);
}

#define SORTED CHUNK
#include "bitonic.glsl"

void add_run(uint first, uint at, uint within) {
    uint place = PLACE_OF(sorted[at]);
    if (place == NO_PLACE || (at % RUN > 0u && PLACE_OF(sorted[at - 1u]) == place)) return;
    uint end = (at / RUN + 1u) * RUN;
    R_VALUE sum = R_VALUE(0);
    // Four loads come before the first sum of theirs.
    for (uint i = at; i < end && PLACE_OF(sorted[i]) == place; i += 4u) {
        R_STORAGE loaded[4];
        uint count = 0u;
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            bool is_own = i + k < end && PLACE_OF(sorted[min(i + k, CHUNK - 1u)]) == place;
            count += uint(is_own);
            uint row = first + NUMBER_OF(sorted[is_own ? i + k : i]);
            loaded[k] = nxv_load(updates, params.updates_at + row * params.part + within);
        }
        [[unroll]] for (uint k = 0; k < 4; ++k) if (k < count) sum += R_LOAD(loaded[k]);
    }
    nxv_store(sums, (first + at) * params.part + within, sum);
}

// How many of the sorted updates go to places before `place`.
uint before(uint place) {
    uint low = 0u;
    uint high = CHUNK;
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (PLACE_OF(sorted[middle]) < place) low = middle + 1u;
        else high = middle;
    }
    return low;
}

// The first of the sorted updates that goes to `place`, or NOWHERE.
uint find(uint place) {
    uint at = before(place);
    return at < CHUNK && PLACE_OF(sorted[at]) == place ? at : NOWHERE;
}

void main() {
#ifdef CROWDED
    if (nxv_load(heads, CROWDED) == 0u) return;
#endif
    uint own = gl_LocalInvocationIndex;
    uint chunk = nxv_divide(nxv_workgroup(), params.tiles, params.by_tiles);
    uint tile = nxv_workgroup() - chunk * params.tiles;
    uint first = chunk * CHUNK;
    if (first >= params.rows) return;
    for (uint i = own; i < CHUNK; i += WORKGROUP) sorted[i] = key_of(first + i, i);
    barrier(); // every key is there before two are compared
    sort();
    if (tile == 0u) {
        for (uint i = own; i < CHUNK; i += WORKGROUP) nxv_store(places, first + i, PLACE_OF(sorted[i]));
#ifndef CROWDED
        uint begins = chunk * params.places;
        for (uint i = own; i < params.places; i += WORKGROUP) nxv_store(beginnings, begins + i, find(i));
#endif
    }
    if (params.part == 1u) {
        // Neighbouring invocations have beginnings of runs that are apart.
        const uint items = CHUNK / WORKGROUP;
        for (uint i = 0u; i < items; ++i) add_run(first, own * items + i, 0u);
        return;
    }
    uint count = before(NO_PLACE) * params.tile;
    for (uint i = own; i < count; i += WORKGROUP) {
        uint at = nxv_divide(i, params.tile, params.by_tile);
        uint within = tile * params.tile + i - at * params.tile;
        if (within < params.part) add_run(first, at, within);
    }
}
