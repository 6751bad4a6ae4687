#version 460
// Packs x: one invocation a piece, and one more the zeros behind the last. Each part of the elements comes after the others.
#include "matrix_x.glsl"

void main() {
    uint index = nxv_workgroup() * THREADS + gl_LocalInvocationIndex;
    if (index > params.x_pieces) return;
#if PLANES > 1
    if (index == params.x_pieces) compute_nothing_anew();
#endif
    uint channel = index % PIECES * PIECE;
    uint at;
    bool inside = find(index / PIECES, channel, at) && index < params.x_pieces;
    PIECE_TYPE pieces[PLANES];
    [[unroll]] for (uint p = 0; p < PLANES; ++p) pieces[p] = PIECE_TYPE(0);
    if (inside) {
#if defined(TOGETHER) && PLANES == 1
        pieces[0] = nxv_load(x, at / PIECE);
#elif defined(TOGETHER)
        [[unroll]] for (uint i = 0; i < PIECE; i += 4) {
            vec4 four = nxv_load(x, (at + i) / 4);
            [[unroll]] for (uint e = 0; e < 4; ++e) {
                uvec3 bits = parts_of(four[e]);
                [[unroll]] for (uint p = 0; p < PLANES; ++p) pieces[p][(i + e) / 2] |= bits[p] << (e % 2 * 16);
            }
        }
#else
        [[unroll]] for (uint i = 0; i < PIECE; ++i) {
            if (channel + i < params.channels) {
                uvec3 bits = parts_of(nxv_load(x, at + i * params.x_channel));
                [[unroll]] for (uint p = 0; p < PLANES; ++p) pieces[p][i / 2] |= bits[p] << (i % 2 * 16);
            }
        }
#endif
    }
    [[unroll]] for (uint p = 0; p < PLANES; ++p) nxv_store(packed, p * (params.x_pieces + 1) + index, pieces[p]);
}
