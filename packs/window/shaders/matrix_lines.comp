#version 460
// Packs x whose neighbours in memory are along the last spatial axis: SPAN pixels of a block of channels a workgroup, which
// reads along the pixels and writes along the channels. One more workgroup writes the zeros behind the last piece.
#include "matrix_x.glsl"

// Words of a pixel, and one to keep pixels off each other's banks.
#define WORDS (BLOCK / 2)
shared uint words[PLANES][SPAN][WORDS + 1];
// Words of its pixel that an invocation packs.
const uint APART = THREADS / SPAN, EACH = (WORDS + APART - 1) / APART;
#define OWN_WORD(e) (gl_LocalInvocationIndex / SPAN + (e) * APART)

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
    // All is loaded at once: under a condition each element would wait for the one before.
    uint last = params.channels - 1 - channel;
    T_STORAGE loaded[EACH][2];
    if (!inside) at = params.x_first + channel * params.x_channel;
    [[unroll]] for (uint e = 0; e < EACH; ++e) {
        [[unroll]] for (uint h = 0; h < 2; ++h) loaded[e][h] = nxv_load(x, at + min(2 * OWN_WORD(e) + h, last) * params.x_channel);
    }
    [[unroll]] for (uint e = 0; e < EACH; ++e) {
        uint word = OWN_WORD(e);
        uvec3 low = inside && 2 * word <= last ? parts_of(loaded[e][0]) : uvec3(0);
        uvec3 high = inside && 2 * word + 1 <= last ? parts_of(loaded[e][1]) : uvec3(0);
        if (word < WORDS) [[unroll]] for (uint p = 0; p < PLANES; ++p) words[p][own][word] = low[p] | high[p] << 16;
    }
    barrier(); // every word is there before it is taken along the channels
    [[unroll]] for (uint i = gl_LocalInvocationIndex; i < SPAN * PIECES; i += THREADS) {
        uint pixel = i / PIECES, piece = i % PIECES;
        [[unroll]] for (uint p = 0; p < PLANES; ++p) {
            uvec4 four = uvec4(words[p][pixel][piece * 4], words[p][pixel][piece * 4 + 1], words[p][pixel][piece * 4 + 2], words[p][pixel][piece * 4 + 3]);
            uint to = p * (params.x_pieces + 1) + slab * params.block_pieces + in_runs(first + pixel) * PIECES + piece;
            if (first + pixel < plane) nxv_store(packed, to, four);
        }
    }
}
