#version 450
// Matrices copied: whole, with ROWS in another order of rows, or with PART_OF
// columns of wider ones.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
    uint count; uint jobs; uint rows; uint columns;
#ifdef PART_OF
    uint wide; uint first;
#endif
};
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { WORK to[]; };
#ifdef ROWS
layout(set = 0, binding = 2, std430) readonly buffer Rows { uint row_of[]; };
#endif

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    uint column = at % columns;
    uint row = at / columns % rows;
#if defined(ROWS)
    uint first = at / columns - row;
    nxv_store(to, at, nxv_load(from, (first + nxv_load(row_of, first + row)) * columns + column));
#elif defined(PART_OF)
    nxv_store(to, at, nxv_load(from, at / columns * wide + first + column));
#else
    nxv_store(to, at, nxv_load(from, at));
#endif
}
