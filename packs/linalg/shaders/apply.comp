#version 450
// Applies a block of reflections to COLUMNS columns: (1 - v t vᴴ)ᴴ to those of the same matrix behind the block, or with LAST
// 1 - v t vᴴ to those of another one, of which the first `start` have nothing where the reflectors are. With SOME
// only those of chosen matrices.
#if SUBGROUP > 1
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "matrix.glsl"
#include "totals.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint start; uint n; uint last; uint count; uint v_batch; };
layout(set = 0, binding = 0, std430) readonly buffer V { WORK v[]; };
layout(set = 0, binding = 1, std430) readonly buffer Ts { WORK ts[]; };
layout(set = 0, binding = 2, std430) buffer A { WORK a[]; };
#ifdef SOME
layout(set = 0, binding = 3, std430) readonly buffer Chosen { uint chosen[]; };
#endif

shared WORK products[WIDTH][COLUMNS];
shared WORK shares[WIDTH][COLUMNS];

WORK reflectors[WIDTH];
WORK cells[COLUMNS];

// Row `i` below the first row of the block: of the reflectors, and of the columns that begin at `at`.
void load_row(uint i, uint reflector, uint at, uint columns) {
    // Loads without a condition are under way together.
    [[unroll]] for (uint k = 0; k < WIDTH; k++) reflectors[k] = nxv_load(v, reflector + min(k, last - 1 - start) * m + i);
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) cells[j] = nxv_load(a, at + min(j, columns - 1) * m + i);
    [[unroll]] for (uint k = 0; k < WIDTH; k++) {
        if (i <= k || start + k >= last) reflectors[k] = i == k ? ONE : WORK(0);
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) if (j >= columns) cells[j] = WORK(0);
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint batch = job / count;
#ifdef SOME
    if (nxv_load(chosen, batch) == 0) return;
#endif
    uint column = job % count * COLUMNS + start;
#ifndef LAST
    column += min(WIDTH, last - start);
#endif
    if (column >= n) return;
    uint columns = min(COLUMNS, n - column);
    uint at = (batch * n + column) * m + start;
    uint reflector = batch * v_batch + start * (m + 1);

    WORK sums[COUNT];
    [[unroll]] for (uint i = 0; i < COUNT; i++) sums[i] = WORK(0);
    for (uint i = own; i < m - start; i += TILE) {
        load_row(i, reflector, at, columns);
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            [[unroll]] for (uint j = 0; j < COLUMNS; j++) sums[k * COLUMNS + j] += TIMES(CONJUGATE(reflectors[k]), cells[j]);
        }
    }
    add_up(sums);
    barrier(); // every subgroup's sums are there
    for (uint place = own; place < COUNT; place += TILE) products[place / COLUMNS][place % COLUMNS] = total(place);
    barrier(); // the products of reflectors and columns are there
    uint blocks = (last + WIDTH - 1) / WIDTH;
    uint triangle = (batch * blocks + start / WIDTH) * WIDTH * WIDTH;
    for (uint place = own; place < COUNT; place += TILE) {
        uint k = place / COLUMNS, j = place % COLUMNS;
        WORK sum = WORK(0);
        for (uint l = 0; l < WIDTH; l++) {
#ifdef LAST
            sum += TIMES(nxv_load(ts, triangle + k * WIDTH + l), products[l][j]);
#else
            sum += TIMES(CONJUGATE(nxv_load(ts, triangle + l * WIDTH + k)), products[l][j]);
#endif
        }
        shares[k][j] = sum;
    }
    barrier(); // what is taken of each reflector is known
    for (uint i = own; i < m - start; i += TILE) {
        load_row(i, reflector, at, columns);
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
            if (j >= columns) continue;
            WORK x = cells[j];
            [[unroll]] for (uint k = 0; k < WIDTH; k++) x -= TIMES(reflectors[k], shares[k][j]);
            nxv_store(a, at + j * m + i, x);
        }
    }
}
