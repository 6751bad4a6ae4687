#version 450
// Replaces the counts of a digit by how many are in the tiles before, and gives their sum.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint digits; // of all lines
    uint tiles;
} params;
layout(set = 0, binding = 0) buffer Counts { uint counts[]; };
layout(set = 0, binding = 1) writeonly buffer Totals { uint totals[]; };

shared uint exchanged[2][WORKGROUP];

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint digit = nxv_workgroup();
    if (digit >= params.digits) return;
    uint before = 0;
    for (uint from = 0; from < params.tiles; from += WORKGROUP) {
        uint at = digit * params.tiles + from + mine;
        bool is_tile = from + mine < params.tiles;
        uint own = is_tile ? nxv_load(counts, at) : 0u;
        uint sum = own;
        uint now = 0;
        exchanged[now][mine] = sum;
        barrier(); // every count is stored before one is read
        for (uint apart = 1; apart < WORKGROUP; apart <<= 1) {
            if (mine >= apart) sum += exchanged[now][mine - apart];
            now ^= 1;
            exchanged[now][mine] = sum;
            barrier(); // as above; the other half is free again
        }
        if (is_tile) nxv_store(counts, at, before + sum - own);
        before += exchanged[now][WORKGROUP - 1];
        barrier(); // all have read the last sum before it is overwritten
    }
    if (mine == 0) nxv_store(totals, digit, before);
}
