#version 450
// Moves the elements of a tile to where their digit puts them, in the order that they have, as scatter.comp does. Subgroups
// find by ballots which rank each has among those of its digit (Ashkiani et al. 2016).
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "digits.glsl"

layout(local_size_x = WORKGROUP) in;
const uint ITEMS = TILE / WORKGROUP;
const uint SUBGROUP_COUNT = WORKGROUP / SUBGROUPS;

layout(set = 0, binding = 2) readonly buffer Counts { uint counts[]; }; // of the same digit in tiles before
layout(set = 0, binding = 3) readonly buffer Totals { uint totals[]; };
#ifdef VALUES
layout(set = 0, binding = VALUES) writeonly buffer Values { RAW values[]; };
#endif
#ifdef ORIGINS
layout(set = 0, binding = ORIGINS) readonly buffer Origins { uint origins[]; };
#endif
#ifdef INDICES
layout(set = 0, binding = INDICES) writeonly buffer Indices { I_STORAGE indices[]; };
#endif

shared RAW staged[TILE];                  // elements in the order of their digits
#ifdef INDICES
shared uint staged_origins[TILE];
#endif
shared uint found[SUBGROUP_COUNT * 256];  // how often a subgroup has each digit, then how often those before it do
shared uint first_of[256];                // where in the tile's new order a digit begins
shared uint result_of[256];               // how far from there it goes

// Item k of an invocation. A subgroup has a stretch of the tile, in which neighbours have neighbours.
uint item_at(uint k) {
    return (gl_SubgroupID * ITEMS + k) * SUBGROUPS + gl_SubgroupInvocationID;
}

// How many elements of this digit the subgroup has had before.
uint rank_of(uint digit) {
    uint same = subgroupBallot(true).x;
    [[unroll]] for (uint bit = 0; bit < 8; ++bit) {
        bool is_set = (digit >> bit & 1u) == 1u;
        uint set = subgroupBallot(is_set).x;
        same &= is_set ? set : ~set;
    }
    uint cell = gl_SubgroupID * 256 + digit;
    uint ahead = bitCount(same & gl_SubgroupLtMask.x);
    uint had = found[cell];
    subgroupBarrier(); // all have read the counts before one grows
    if (ahead == 0) found[cell] = had + bitCount(same);
    subgroupBarrier(); // they have grown before the next ones are read
    return had + ahead;
}

// Sums the digits of the tile and of the line, each lane of one subgroup a stretch of them.
void sum_digits(uint line, uint lane) {
    const uint own = 256 / SUBGROUPS;
    uvec2 sum = uvec2(0);
    [[unroll]] for (uint k = 0; k < own; ++k) {
        uint digit = lane * own + k;
        sum += uvec2(first_of[digit], nxv_load(totals, line * 256 + digit));
    }
    uvec2 before = subgroupExclusiveAdd(sum);
    [[unroll]] for (uint k = 0; k < own; ++k) {
        uint digit = lane * own + k;
        uvec2 times = uvec2(first_of[digit], nxv_load(totals, line * 256 + digit));
        first_of[digit] = before.x;
        result_of[digit] = before.y - before.x;
        before += times;
    }
}

void main() {
    uint lane = gl_SubgroupInvocationID;
    uint mine = gl_SubgroupID * SUBGROUPS + lane;
    uint line = nxv_workgroup() / params.tiles;
    uint tile = nxv_workgroup() % params.tiles;
    if (line >= params.lines) return;
    uvec2 start = line_start(line, params.axes_count);
    uint begin = tile * TILE;
    uint count = min(TILE, params.extent - begin);

    RAW raws[ITEMS];
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) raws[k] = element(line, start, begin + min(item_at(k), count - 1));
#ifdef INDICES
    uint from[ITEMS];
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        from[k] = begin + min(item_at(k), count - 1);
#ifdef ORIGINS
        from[k] = nxv_load(origins, line * params.extent + from[k]);
#endif
    }
#endif
    for (uint i = mine; i < SUBGROUP_COUNT * 256; i += WORKGROUP) found[i] = 0;
    barrier(); // all counts are 0 before one grows
    // What is no element comes last: it has the last digit, and stands behind all elements.
    uint places[ITEMS];
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        uint digit = item_at(k) < count ? digit_of(key_of(raws[k]), params.digit) : 255u;
        places[k] = digit << 16 | rank_of(digit);
    }
    barrier(); // everything is counted
    for (uint digit = mine; digit < 256; digit += WORKGROUP) {
        uint sum = 0;
        [[unroll]] for (uint k = 0; k < SUBGROUP_COUNT; ++k) {
            uint times = found[k * 256 + digit];
            found[k * 256 + digit] = sum;
            sum += times;
        }
        first_of[digit] = sum;
    }
    barrier(); // every digit is summed over subgroups before digits are
    if (gl_SubgroupID == 0) sum_digits(line, lane);
    barrier(); // it is known where digits begin
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        uint digit = places[k] >> 16;
        uint place = first_of[digit] + found[gl_SubgroupID * 256 + digit] + (places[k] & 0xffffu);
        staged[place] = raws[k];
#ifdef INDICES
        staged_origins[place] = from[k];
#endif
    }
    for (uint digit = mine; digit < 256; digit += WORKGROUP) {
        result_of[digit] += nxv_load(counts, (line * 256 + digit) * params.tiles + tile);
    }
    barrier(); // the tile is in its new order, and every digit knows where it goes

    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        uint i = k * WORKGROUP + mine;
        RAW raw = staged[i];
        uint to = result_of[digit_of(key_of(raw), params.digit)] + i;
        bool is_wanted = i < count;
#ifdef LAST
        is_wanted = is_wanted && to < params.keep;
        to = start.y + to * params.result_step;
#else
        to += line * params.extent;
#endif
#ifdef VALUES
        if (is_wanted) nxv_store(values, to, raw);
#endif
#ifdef INDICES
        if (is_wanted) nxv_store(indices, to, I_STORE(I_CAST(staged_origins[i])));
#endif
    }
}
