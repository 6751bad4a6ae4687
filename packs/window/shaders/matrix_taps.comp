#version 460
// Packs a kernel whose neighbours in memory are those along the spatial axes: SPAN steps of 16 lanes a workgroup, which reads along
// the steps and writes along the lanes. A step is one element of the spatial axes.
#include "matrix_kernel.glsl"

// Words of the 16 lanes' registers in one step, and one to keep steps off each other's banks.
#define WORDS 64
shared uint words[PLANES][SPAN][WORDS + 1];

void main() {
    uint spans = (params.steps + SPAN - 1) / SPAN;
    uint rest = nxv_workgroup();
    uint span = rest % spans;
    rest /= spans;
    uint half_warp = rest % 2, part = rest / 2 % 2, w = rest / 4 % TILE_M, tile = rest / (4 * TILE_M);
    if (tile >= params.groups * params.tiles_m) return;
    uint group = tile / params.tiles_m;

    uint own = gl_LocalInvocationIndex % SPAN;
    uint channel, at, place;
    bool is_there = piece_of((span * SPAN + own) * 4, channel, at, place);
    at += params.kernel_first + group * params.kernel_group;
    [[unroll]] for (uint word = gl_LocalInvocationIndex / SPAN; word < WORDS; word += THREADS / SPAN) {
        // Register 2e + r of lane 4g + t has elements 2e and 2e + 1 of filter r of two.
        uint lane = half_warp * 16 + word / 4;
        uint filter_index = tile % params.tiles_m * FILTERS + lane / 4 * (2 * TILE_M) + 2 * w + word % 2;
        uint first = channel + lane % 4 * 8 + part * 4 + word / 2 % 2 * 2;
        uvec3 low = uvec3(0), high = uvec3(0);
        if (is_there && filter_index < params.filters) {
            uint from = at + filter_index * params.kernel_filter + first * params.kernel_channel;
            if (first < params.channels) low = parts_of(nxv_load(weights, from));
            if (first + 1 < params.channels) high = parts_of(nxv_load(weights, from + params.kernel_channel));
        }
        [[unroll]] for (uint p = 0; p < PLANES; ++p) words[p][own][word] = low[p] | high[p] << 16;
    }
    barrier(); // every word is there before it is taken along the lanes
    uint lane = gl_LocalInvocationIndex % 16;
    [[unroll]] for (uint s = gl_LocalInvocationIndex / 16; s < SPAN; s += THREADS / 16) {
        uint step = span * SPAN + s;
        uint to = (((tile * params.steps + step) * 2 + part) * PLANES * TILE_M + w) * 32 + half_warp * 16 + lane;
        [[unroll]] for (uint p = 0; p < PLANES; ++p) {
            uvec4 registers = uvec4(words[p][s][lane * 4], words[p][s][lane * 4 + 1], words[p][s][lane * 4 + 2], words[p][s][lane * 4 + 3]);
            if (step < params.steps) nxv_store(packed, to + p * (TILE_M * 32), registers);
        }
    }
    if (tile == 0 && w == 0 && part == 0 && half_warp == 0) {
        for (uint piece = gl_LocalInvocationIndex; piece < SPAN * 4; piece += THREADS) {
            if (span * SPAN + piece / 4 < params.steps) list(span * SPAN * 4 + piece);
        }
    }
}
