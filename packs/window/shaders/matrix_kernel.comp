#version 460
// Packs the kernel: one invocation the registers of a lane.
#include "matrix_kernel.glsl"

void main() {
    uint index = nxv_workgroup() * THREADS + gl_LocalInvocationIndex;
    if (index >= params.groups * params.tiles_m * params.steps * TILE_M * 64) return;
    uint lane = index % 32, g = lane / 4, t = lane % 4;
    uint w = index / 32 % TILE_M;
    uint part = index / (32 * TILE_M) % 2;
    uint rest = index / (64 * TILE_M);
    uint tile = nxv_divide(rest, params.steps, params.by_steps);
    uint step = rest - tile * params.steps;
    uint group = tile / params.tiles_m;
    uint first = tile % params.tiles_m * FILTERS + g * (2 * TILE_M) + 2 * w;
    uvec4 registers[PLANES];
    [[unroll]] for (uint p = 0; p < PLANES; ++p) registers[p] = uvec4(0);
    // Elements 4 part to 4 part + 3 of the eight that lane t has of this step.
    uint channel, at, place;
    bool is_there = piece_of((step * 4 + t) * OWN + (PIECE == 4 ? part : 0), channel, at, place);
    if (PIECE == 8) channel += 4 * part;
    at += params.kernel_first + group * params.kernel_group + channel * params.kernel_channel;
    [[unroll]] for (uint e = 0; e < 4; ++e) {
        [[unroll]] for (uint r = 0; r < 2; ++r) {
            if (is_there && channel + e < params.channels && first + r < params.filters) {
                uvec3 bits = parts_of(nxv_load(weights, at + (first + r) * params.kernel_filter + e * params.kernel_channel));
                [[unroll]] for (uint p = 0; p < PLANES; ++p) registers[p][e / 2 * 2 + r] |= bits[p] << (e % 2 * 16);
            }
        }
    }
    uint to = ((rest * 2 + part) * PLANES * TILE_M + w) * 32 + lane;
    [[unroll]] for (uint p = 0; p < PLANES; ++p) nxv_store(packed, to + p * (TILE_M * 32), registers[p]);
    if (tile == 0 && w == 0 && g == 0 && part < OWN) list((step * 4 + t) * OWN + part);
}
