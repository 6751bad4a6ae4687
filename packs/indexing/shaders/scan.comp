#version 450
// A workgroup each digit: how often it occurs in the blocks before each one, and in all of them.
#include "sort.glsl"

layout(set = 0, binding = 0) buffer Counts { uint counts[]; };
layout(set = 0, binding = 1) writeonly buffer Totals { uint totals[]; };

shared uint sums[WORKGROUP];

void main() {
    uint digit = nxv_workgroup();
    uint own = gl_LocalInvocationID.x;
    if (digit >= DIGITS) return;

    uint before = 0u;
    for (uint first = 0u; first < params.blocks; first += WORKGROUP) {
        uint block = first + own;
        uint at = digit * params.blocks + min(block, params.blocks - 1u);
        uint count = block < params.blocks ? nxv_load(counts, at) : 0u;
        sums[own] = count;
        [[unroll]] for (uint apart = 1u; apart < WORKGROUP; apart *= 2u) {
            barrier(); // The sums of the last round are there.
            uint other = own >= apart ? sums[own - apart] : 0u;
            barrier(); // They are read before they change.
            sums[own] += other;
        }
        barrier(); // The last sum is there.
        if (block < params.blocks) nxv_store(counts, at, before + sums[own] - count);
        before += sums[WORKGROUP - 1u];
        barrier(); // It is read before the next round begins.
    }
    if (own == 0u) nxv_store(totals, digit, before);
}
