#version 450
// Products of matrices, in tiles of BLOCK x BLOCK of which an invocation has 4 x 4. A step takes `parts` products that lie apart
// for each of its matrices; results of one matrix end after `end` rows.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
    uint rows; uint jobs; uint columns; uint depth; uint parts;
    uint a_row; uint a_column; uint a_batch; uint a_part;
    uint b_row; uint b_column; uint b_batch; uint b_part;
    uint x_row; uint x_batch; uint x_part; uint end;
};
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { WORK b[]; };
layout(set = 0, binding = 2, std430) writeonly buffer X { WORK x[]; };

const uint DEPTH = 16;
shared WORK left[DEPTH][BLOCK + 1];
shared WORK right[DEPTH][BLOCK + 1];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint down = (rows + BLOCK - 1) / BLOCK, across = (columns + BLOCK - 1) / BLOCK;
    uint tile = job % (down * across), part = job / (down * across) % parts, batch = job / (down * across) / parts;
    uvec2 place = uvec2(tile / across, tile % across) * BLOCK;
    uint a_first = batch * a_batch + part * a_part, b_first = batch * b_batch + part * b_part;

    uvec2 own = uvec2(gl_LocalInvocationIndex / 8, gl_LocalInvocationIndex % 8);
    WORK sums[4][4];
    [[unroll]] for (uint i = 0; i < 4; i++) [[unroll]] for (uint j = 0; j < 4; j++) sums[i][j] = WORK(0);
    for (uint start = 0; start < depth; start += DEPTH) {
        for (uint at = gl_LocalInvocationIndex; at < BLOCK * DEPTH; at += 64) {
            uvec2 along = uvec2(at / DEPTH, at % DEPTH), beside = uvec2(at % BLOCK, at / BLOCK);
            uvec2 i = a_column == 1 ? along : beside, j = b_row == 1 ? along : beside;
            bool is_in = place.x + i.x < rows && start + i.y < depth;
            left[i.y][i.x] =
                is_in ? nxv_load(a, a_first + (place.x + i.x) * a_row + (start + i.y) * a_column) : WORK(0);
            is_in = place.y + j.x < columns && start + j.y < depth;
            right[j.y][j.x] =
                is_in ? nxv_load(b, b_first + (start + j.y) * b_row + (place.y + j.x) * b_column) : WORK(0);
        }
        barrier(); // both tiles are there before they are used
        for (uint k = 0; k < DEPTH; k++) {
            [[unroll]] for (uint i = 0; i < 4; i++) {
                [[unroll]] for (uint j = 0; j < 4; j++) sums[i][j] += left[k][own.x + 8 * i] * right[k][own.y + 8 * j];
            }
        }
        barrier(); // they are used before the next ones come
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint j = 0; j < 4; j++) {
            uvec2 at = place + own + 8 * uvec2(i, j);
            if (at.x >= min(rows, end - min(part * rows, end)) || at.y >= columns) continue;
            nxv_store(x, batch * x_batch + part * x_part + at.x * x_row + at.y, sums[i][j]);
        }
    }
}
