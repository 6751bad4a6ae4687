#version 450
// Matrices with rows and columns exchanged, by tiles. UPPER leaves out what is below the diagonal of the result; FACTOR has ones on
// its diagonal and nothing above, its rows being columns of the operand in another order. PLACES numbers the columns of results.
// With PARTS a matrix is one of so many parts of a larger one of `whole` rows, and goes on with zeros where that ends.
#include "matrix.glsl"

const uint STEP = TILE / 32;

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push {
    uint rows; uint jobs; uint columns; uint stride; uint batch; uint to_batch; uint to_first; uint down; uint across;
#ifdef PARTS
    uint whole;
#endif
};
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { WORK to[]; };
#if defined(FACTOR)
layout(set = 0, binding = 2, std430) readonly buffer Order { uint order[]; };
#elif defined(PLACES)
layout(set = 0, binding = 2, std430) writeonly buffer Places { uint places[]; };
#endif

shared WORK cells[32][33];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint matrix = job / (down * across);
    uvec2 corner = 32 * uvec2(job / across % down, job % across);
    uvec2 own = uvec2(gl_LocalInvocationIndex / 32, gl_LocalInvocationIndex % 32);
    uint column = corner.y + own.y;
#ifdef FACTOR
    if (column < columns) column = nxv_load(order, matrix * columns + column);
#endif
    uint first = matrix * batch, end = rows;
#ifdef PARTS
    uint before = matrix % PARTS * rows;
    first = matrix / PARTS * batch + before * stride;
    end = min(rows, whole - min(before, whole));
#endif
    UNROLL for (uint i = 0; i < 32; i += STEP) {
        uint row = corner.x + own.x + i;
#ifdef PARTS
        cells[own.x + i][own.y] = WORK(0);
#endif
        if (row < end && column < columns) cells[own.x + i][own.y] = nxv_load(from, first + row * stride + column);
    }
    barrier(); // the tile is there
    UNROLL for (uint i = 0; i < 32; i += STEP) {
        uvec2 at = corner.yx + uvec2(own.x + i, own.y);
        if (at.x >= columns || at.y >= rows) continue;
        WORK x = cells[own.y][own.x + i];
#if defined(UPPER)
        if (at.x > at.y) x = WORK(0);
#elif defined(FACTOR)
        if (at.x <= at.y) x = at.x == at.y ? ONE : WORK(0);
#elif defined(PLACES)
        if (at.x == 0) nxv_store(places, matrix * rows + at.y, at.y);
#endif
        nxv_store(to, matrix * to_batch + to_first + at.x * rows + at.y, x);
    }
}
