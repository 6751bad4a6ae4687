#version 450
// How often each digit occurs in a tile.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "digits.glsl"

layout(local_size_x = WORKGROUP) in;
// In the order of lines, digits, tiles.
layout(set = 0, binding = 2) writeonly buffer Counts { uint counts[]; };

shared uint found[256];

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint line = nxv_workgroup() / params.tiles;
    uint tile = nxv_workgroup() % params.tiles;
    if (line >= params.lines) return;
    uvec2 start = line_start(line, params.axes_count);
    for (uint i = mine; i < 256; i += WORKGROUP) found[i] = 0;
    barrier(); // all counts are 0 before one grows

    uint begin = tile * TILE;
    uint end = begin + min(TILE, params.extent - begin);
    for (uint i = begin + mine; i < end; i += WORKGROUP) {
        atomicAdd(found[digit_of(key_of(element(line, start, i)), params.digit)], 1u);
    }
    barrier(); // every element is counted before the counts are given
    for (uint i = mine; i < 256; i += WORKGROUP) {
        nxv_store(counts, (line * 256 + i) * params.tiles + tile, found[i]);
    }
}
