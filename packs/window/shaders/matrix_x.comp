#version 460
// Packs x: one invocation a piece, and one more the zeros behind the last. Each part of the elements comes after the others. What is
// loaded is loaded at once: under a condition each element would wait for the one before.
#include "matrix_x.glsl"

void main() {
    uint index = nxv_workgroup() * THREADS + gl_LocalInvocationIndex;
    if (index > params.x_pieces) return;
#if PLANES > 1
    if (index == params.x_pieces) compute_nothing_anew();
#endif
    uint channel = index % PIECES * PIECE;
    uint at;
    bool inside = find(index / PIECES, channel, at) && index < params.x_pieces && channel < params.channels;
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
        uint last = params.channels - 1 - channel;
        T_STORAGE own[PIECE];
        [[unroll]] for (uint i = 0; i < PIECE; ++i) own[i] = nxv_load(x, at + min(i, last) * params.x_channel);
        [[unroll]] for (uint i = 0; i < PIECE; ++i) {
            uvec3 bits = i <= last ? parts_of(own[i]) : uvec3(0);
            [[unroll]] for (uint p = 0; p < PLANES; ++p) pieces[p][i / 2] |= bits[p] << (i % 2 * 16);
        }
#endif
    }
    uint to = index == params.x_pieces ? index : in_runs(index / PIECES) * PIECES + index % PIECES;
    [[unroll]] for (uint p = 0; p < PLANES; ++p) nxv_store(packed, p * (params.x_pieces + 1) + to, pieces[p]);
}
