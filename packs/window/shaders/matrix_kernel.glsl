// What packs the kernel in the order in which the lanes of a subgroup load it, and lists where in the packed x its pieces start:
// [group][tile of filters][step][half of the step][part][16 filters][lane], each the four registers of a fragment (product.glsl).
#include "matrix.glsl"
#include "parts.glsl"

layout(local_size_x = THREADS) in;
layout(set = 0, binding = 1, std430) readonly restrict buffer Kernel { T_STORAGE weights[]; };
layout(set = 0, binding = 2, std430) writeonly restrict buffer Packed { uvec4 packed[]; };
layout(set = 0, binding = 3, std430) writeonly restrict buffer Places { uint places[]; };

// Piece `index` of a filter: its first channel, where its element of the kernel lies, and where it starts in the packed x.
// False where there is none.
bool piece_of(uint index, out uint channel, out uint at, out uint place) {
    uint rest = index / PIECES;
    uint block = nxv_divide(rest, params.taps, params.by_taps);
    uint tap = rest - block * params.taps;
    channel = block * BLOCK + index % PIECES * PIECE;
    at = 0;
    place = block * params.block_pieces + index % PIECES;
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(tap, params.spatial[k].taps, params.spatial[k].by_taps);
        uint along = tap - outer * params.spatial[k].taps;
        at += along * params.spatial[k].kernel_step;
        uint step = params.spatial[k].tap_step;
#if PHASES > 1
        if (k == DIMS - 1) {
            uint reached = along * (step / PIECES);
            place += (reached % PHASES * (params.spatial[k].packed / PHASES) + reached / PHASES) * PIECES;
        } else
#endif
        place += along * step;
        tap = outer;
    }
    return block < params.blocks;
}

// Lists `piece`; the product looks one step ahead of the last.
void list(uint piece) {
    uint channel, at, place;
    bool is_there = piece_of(piece, channel, at, place);
    nxv_store(places, piece, is_there ? place : NOWHERE);
    if (piece < 4 * OWN) nxv_store(places, piece + params.steps * (4 * OWN), WHOLE == 1 ? 0u : NOWHERE);
}
