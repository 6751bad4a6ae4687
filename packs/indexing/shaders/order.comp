#version 450
// Puts the updates of a block where their digits belong, those of one digit in their order.
#include "sort.glsl"

layout(set = 0, binding = 0) readonly buffer From { uvec2 source[]; };
layout(set = 0, binding = 1) readonly buffer Counts { uint counts[]; };
layout(set = 0, binding = 2) readonly buffer Totals { uint totals[]; };
layout(set = 0, binding = 3) writeonly buffer To { uvec2 target[]; };

shared uint totals_of[DIGITS];
shared uint places[DIGITS];
shared uint digits[WORKGROUP];

void main() {
    uint block = nxv_workgroup();
    uint own = gl_LocalInvocationID.x;
    if (block >= params.blocks) return;

    for (uint d = own; d < DIGITS; d += WORKGROUP) totals_of[d] = nxv_load(totals, d);
    barrier(); // The totals are there.
    for (uint d = own; d < DIGITS; d += WORKGROUP) {
        uint place = nxv_load(counts, d * params.blocks + block);
        for (uint other = 0u; other < d; ++other) place += totals_of[other];
        places[d] = place;
    }
    for (uint first = block * BLOCK; first < min((block + 1u) * BLOCK, params.count); first += WORKGROUP) {
        bool is_there = first + own < params.count;
        uvec2 update = nxv_load(source, min(first + own, params.count - 1u));
        digits[own] = is_there ? digit_of(update) : DIGITS;
        barrier(); // Digits and places are there.
        uint before = 0u;
        uint same = 0u;
        for (uint other = 0u; other < WORKGROUP; ++other) {
            uint is_same = uint(digits[other] == digits[own]);
            before += other < own ? is_same : 0u;
            same += is_same;
        }
        if (is_there) nxv_store(target, places[digits[own]] + before, update);
        barrier(); // Places are read before they move, and digits before the next ones.
        if (is_there && before + 1u == same) places[digits[own]] += same;
    }
}
