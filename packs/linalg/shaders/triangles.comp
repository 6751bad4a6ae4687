#version 450
// Triangles t of blocks of WIDTH reflections, a workgroup to a block: 1 - v t vᵀ is their product (Schreiber and Van Loan 1989).
#if SUBGROUP > 1
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "matrix.glsl"
#include "totals.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint blocks; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer V { WORK v[]; };
layout(set = 0, binding = 1, std430) readonly buffer Lists { WORK lists[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Ts { WORK ts[]; };

shared WORK gram[WIDTH][WIDTH];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, matrix = job / blocks, start = job % blocks * WIDTH;
    WORK sums[COUNT];
    [[unroll]] for (uint i = 0; i < COUNT; i++) sums[i] = WORK(0);
    // A reflector has nothing up to its own number.
    for (uint j = start / TILE * TILE + own; j < n; j += TILE) {
        WORK cells[WIDTH];
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            cells[k] = nxv_load(v, (matrix * n + min(start + k, n - 1)) * n + j);
        }
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            [[unroll]] for (uint l = 0; l < WIDTH; l++) sums[k * WIDTH + l] += cells[k] * cells[l];
        }
    }
    add_up(sums);
    barrier(); // every subgroup's sums are there
    for (uint place = own; place < COUNT; place += TILE) gram[place / WIDTH][place % WIDTH] = total(place);
    barrier(); // products of all pairs are there
    for (uint i = own; i < WIDTH; i += TILE) {
        WORK row[WIDTH];
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            WORK tau = start + j < n ? nxv_load(lists, TAUS * total_rows + matrix * padded + start + j) : WORK(0);
            WORK sum = WORK(0);
            [[unroll]] for (uint l = 0; l < j; l++) sum += row[l] * gram[l][j];
            row[j] = j < i ? WORK(0) : j == i ? tau : -tau * sum;
            nxv_store(ts, (job * WIDTH + i) * WIDTH + j, row[j]);
        }
    }
}
