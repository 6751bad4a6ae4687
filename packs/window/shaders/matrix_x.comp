#version 460
// Packs x: one invocation a piece, and one more the zeros behind the last.
#include "matrix_x.glsl"

void main() {
    uint index = nxv_workgroup() * THREADS + gl_LocalInvocationIndex;
    if (index > params.x_pieces) return;
    uint channel = index % PIECES * PIECE;
    uint at;
    bool inside = find(index / PIECES, channel, at) && index < params.x_pieces;
    PIECE_TYPE piece = PIECE_TYPE(0);
    if (inside) {
        [[unroll]] for (uint i = 0; i < PIECE; ++i) {
            if (channel + i < params.channels) piece[i / 2] |= uint(nxv_load(x, at + i * params.x_channel)) << (i % 2 * 16);
        }
    }
    nxv_store(packed, index, piece);
}
