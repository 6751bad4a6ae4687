#version 460
// Packs x whose neighbours in memory are along the last spatial axis: SPAN pixels of a block of channels a workgroup, which
// reads along the pixels and writes along the channels. One more workgroup writes the zeros behind the last piece.
#include "matrix_x.glsl"

// Words of a pixel, and one to keep pixels off each other's banks.
#define WORDS (BLOCK / 2)
shared uint words[PLANES][SPAN][WORDS + 1];

void main() {
    uint plane = params.block_pieces / PIECES;
    uint spans = (plane + SPAN - 1) / SPAN;
    uint slab = nxv_workgroup() / spans, first = (nxv_workgroup() - slab * spans) * SPAN;
    if (slab * params.block_pieces >= params.x_pieces) {
        if (slab * params.block_pieces == params.x_pieces && first == 0 && gl_LocalInvocationIndex < PLANES) store_zeros();
        return;
    }
    uint own = gl_LocalInvocationIndex % SPAN;
    uint channel = 0;
    uint at;
    bool inside = find(slab * plane + min(first + own, plane - 1), channel, at);
    [[unroll]] for (uint word = gl_LocalInvocationIndex / SPAN; word < WORDS; word += THREADS / SPAN) {
        uvec3 low = uvec3(0), high = uvec3(0);
        uint from = at + 2 * word * params.x_channel;
        if (inside && channel + 2 * word < params.channels) low = parts_of(nxv_load(x, from));
        if (inside && channel + 2 * word + 1 < params.channels) high = parts_of(nxv_load(x, from + params.x_channel));
        [[unroll]] for (uint p = 0; p < PLANES; ++p) words[p][own][word] = low[p] | high[p] << 16;
    }
    barrier(); // every word is there before it is taken along the channels
    [[unroll]] for (uint i = gl_LocalInvocationIndex; i < SPAN * PIECES; i += THREADS) {
        uint pixel = i / PIECES, piece = i % PIECES;
        [[unroll]] for (uint p = 0; p < PLANES; ++p) {
            uvec4 four = uvec4(words[p][pixel][piece * 4], words[p][pixel][piece * 4 + 1], words[p][pixel][piece * 4 + 2], words[p][pixel][piece * 4 + 3]);
            uint to = p * (params.x_pieces + 1) + slab * params.block_pieces + first * PIECES + i;
            if (first + pixel < plane) nxv_store(packed, to, four);
        }
    }
}
