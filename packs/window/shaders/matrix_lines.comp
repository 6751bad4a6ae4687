#version 460
// Packs x whose neighbours in memory are along the last spatial axis: SPAN pixels of a block of channels a workgroup, which
// reads along the pixels and writes along the channels. One more workgroup writes the zeros behind the last piece.
#include "matrix_x.glsl"

// Words of a pixel, and one to keep pixels off each other's banks.
#define WORDS (BLOCK / 2)
shared uint words[SPAN][WORDS + 1];

void main() {
    uint plane = params.block_pieces / PIECES;
    uint spans = (plane + SPAN - 1) / SPAN;
    uint slab = nxv_workgroup() / spans, first = (nxv_workgroup() - slab * spans) * SPAN;
    if (slab * params.block_pieces >= params.x_pieces) {
        if (first == 0 && gl_LocalInvocationIndex == 0) nxv_store(packed, params.x_pieces, PIECE_TYPE(0));
        return;
    }
    uint own = gl_LocalInvocationIndex % SPAN;
    uint channel = 0;
    uint at;
    bool inside = find(slab * plane + min(first + own, plane - 1), channel, at);
    [[unroll]] for (uint word = gl_LocalInvocationIndex / SPAN; word < WORDS; word += THREADS / SPAN) {
        uint low = 0, high = 0;
        uint from = at + 2 * word * params.x_channel;
        if (inside && channel + 2 * word < params.channels) low = nxv_load(x, from);
        if (inside && channel + 2 * word + 1 < params.channels) high = nxv_load(x, from + params.x_channel);
        words[own][word] = low | high << 16;
    }
    barrier(); // every word is there before it is taken along the channels
    [[unroll]] for (uint i = gl_LocalInvocationIndex; i < SPAN * PIECES; i += THREADS) {
        uint pixel = i / PIECES;
        uint word = i % PIECES * 4;
        uvec4 piece = uvec4(words[pixel][word], words[pixel][word + 1], words[pixel][word + 2], words[pixel][word + 3]);
        if (first + pixel < plane) nxv_store(packed, slab * params.block_pieces + first * PIECES + i, piece);
    }
}
