#version 450
// Replaces the counts of a digit by how many are in the tiles before, and gives their sum. FEW: there are few tiles, so that
// an invocation takes a digit; else a workgroup does.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint digits; // of all lines
    uint tiles;
} params;
layout(set = 0, binding = 0) buffer Counts { uint counts[]; };
layout(set = 0, binding = 1) writeonly buffer Totals { uint totals[]; };

#ifdef FEW

void main() {
    uint digit = nxv_workgroup() * WORKGROUP + gl_LocalInvocationIndex;
    if (digit >= params.digits) return;
    uint before = 0;
    for (uint at = digit * params.tiles; at < (digit + 1) * params.tiles; ++at) {
        uint own = nxv_load(counts, at);
        nxv_store(counts, at, before);
        before += own;
    }
    nxv_store(totals, digit, before);
}

#else

const uint ITEMS = 4;
shared uint exchanged[2][WORKGROUP];

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint digit = nxv_workgroup();
    if (digit >= params.digits) return;
    uint before = 0;
    for (uint from = 0; from < params.tiles; from += ITEMS * WORKGROUP) {
        uint own[ITEMS];
        uint sum = 0;
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            uint tile = from + mine * ITEMS + k;
            own[k] = tile < params.tiles ? nxv_load(counts, digit * params.tiles + tile) : 0u;
            sum += own[k];
        }
        uint at = before - sum;
        uint now = 0;
        exchanged[now][mine] = sum;
        barrier(); // every count is stored before one is read
        for (uint apart = 1; apart < WORKGROUP; apart <<= 1) {
            if (mine >= apart) sum += exchanged[now][mine - apart];
            now ^= 1;
            exchanged[now][mine] = sum;
            barrier(); // as above; the other half is free again
        }
        at += sum;
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            uint tile = from + mine * ITEMS + k;
            if (tile < params.tiles) nxv_store(counts, digit * params.tiles + tile, at);
            at += own[k];
        }
        before += exchanged[now][WORKGROUP - 1];
        barrier(); // all have read the last sum before it is overwritten
    }
    if (mine == 0) nxv_store(totals, digit, before);
}

#endif
