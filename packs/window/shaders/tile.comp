#version 450
// One workgroup computes BLOCK_M filters at BLOCK_N positions, BLOCK_K kernel elements at a time: the next ones are loaded
// into registers while the current ones are multiplied out of shared memory, whose two halves take turns.
// An invocation owns PACKS_M x PACKS_N squares of WIDTH x WIDTH. With STORED it stores WIDTH results at once, which lie together along
// filters or positions.
#include "conv.glsl"

layout(local_size_x = THREADS) in;
#ifndef STORED
#define STORED RESULT
#endif
layout(set = 0, binding = 3, std430) writeonly restrict buffer Results { STORED results[]; };

const uint LANES_M = BLOCK_M / (PACKS_M * WIDTH);
const uint LANES_N = BLOCK_N / (PACKS_N * WIDTH);
const uint W_ITEMS = BLOCK_M * BLOCK_K / THREADS;
const uint X_ITEMS = BLOCK_N * BLOCK_K / THREADS;
// One pack of padding keeps stores along k off each other's banks.
const uint W_ROW = BLOCK_M / WIDTH + 1;
const uint X_ROW = BLOCK_N / WIDTH + 1;
// Columns that one invocation loads from.
#if X_ALONG_K
const uint OWN = X_ITEMS;
#else
const uint OWN = BLOCK_N > THREADS ? BLOCK_N / THREADS : 1;
#endif

shared VEC w_tile[2 * BLOCK_K * W_ROW];
shared VEC x_tile[2 * BLOCK_K * X_ROW];
shared Tap taps[2 * BLOCK_K];

T_VALUE w_next[W_ITEMS];
T_VALUE x_next[X_ITEMS];
uint x_first[OWN];
Column corners[OWN];
uint w_first;
uint w_corner;
uint depth_end;
// Sums one by one: what is a vector NVIDIA's driver may keep in memory.
const uint COLUMNS = PACKS_N * WIDTH;
T_VALUE sums[PACKS_M * WIDTH * COLUMNS];

// Place of item `i` in its tile: x along filters or positions, y along the kernel's elements.
uvec2 w_place(uint i) {
    uint element = gl_LocalInvocationIndex + i * THREADS;
    return W_ALONG_K == 1 ? uvec2(element / BLOCK_K, element % BLOCK_K) : uvec2(element % BLOCK_M, element / BLOCK_M);
}

uvec2 x_place(uint i) {
    uint element = gl_LocalInvocationIndex + i * THREADS;
    return X_ALONG_K == 1 ? uvec2(element / BLOCK_K, element % BLOCK_K) : uvec2(element % BLOCK_N, element / BLOCK_N);
}

// The elements from `start` on, for whoever loads them after the next barrier.
void look_up(uint turn, uint start) {
    uint own = gl_LocalInvocationIndex;
    if (own < BLOCK_K) taps[turn * BLOCK_K + own] = tap_of(min(start + own, params.depth - 1));
}

// Beyond the edges the last filters and positions repeat: their sums are never stored. Beyond the depth both are zero.
void fetch(uint turn, uint start) {
    [[unroll]] for (uint i = 0; i < W_ITEMS; i++) {
        uvec2 place = w_place(i);
        w_next[i] = T_VALUE(0);
        uint filter_index = min(w_corner + place.x, params.filters - 1);
        if (start + place.y < depth_end) {
            uint at = w_first + filter_index * params.kernel_filter + taps[turn * BLOCK_K + place.y].kernel;
            w_next[i] = T_LOAD(nxv_load(weights, at));
        }
    }
    [[unroll]] for (uint i = 0; i < X_ITEMS; i++) {
        uvec2 place = x_place(i);
        x_next[i] = T_VALUE(0);
        uint tap = turn * BLOCK_K + place.y;
        uint at = x_first[i % OWN] + taps[tap].x;
        bool inside = start + place.y < depth_end;
        [[unroll]] for (int k = 0; k < DIMS; ++k) {
            inside = reaches(k, corners[i % OWN].at[k] + taps[tap].at[k], at) && inside;
        }
        if (inside) x_next[i] = T_LOAD(nxv_load(x, at));
    }
}

void publish(uint turn) {
    [[unroll]] for (uint i = 0; i < W_ITEMS; i++) {
        uvec2 place = w_place(i);
        w_tile[(turn * BLOCK_K + place.y) * W_ROW + place.x / WIDTH][place.x % WIDTH] = w_next[i];
    }
    [[unroll]] for (uint i = 0; i < X_ITEMS; i++) {
        uvec2 place = x_place(i);
        x_tile[(turn * BLOCK_K + place.y) * X_ROW + place.x / WIDTH][place.x % WIDTH] = x_next[i];
    }
}

void multiply(uint turn, uvec2 lane) {
    uint w_at = turn * BLOCK_K * W_ROW + lane.x;
    uint x_at = turn * BLOCK_K * X_ROW + lane.y;
    [[unroll]] for (uint depth = 0; depth < BLOCK_K; depth++) {
        VEC rows[PACKS_M];
        VEC columns[PACKS_N];
        [[unroll]] for (uint i = 0; i < PACKS_M; i++) rows[i] = w_tile[w_at + depth * W_ROW + i * LANES_M];
        [[unroll]] for (uint i = 0; i < PACKS_N; i++) columns[i] = x_tile[x_at + depth * X_ROW + i * LANES_N];
        [[unroll]] for (uint i = 0; i < PACKS_M * WIDTH; i++) {
            [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
                uint at = i * COLUMNS + j;
                sums[at] = fma(rows[i / WIDTH][i % WIDTH], columns[j / WIDTH][j % WIDTH], sums[at]);
            }
        }
    }
}

#ifdef SHORTS
#define PUT(values, e, x) values[(e) / 2] |= uint(x) << ((e) % 2 * 16)
#else
#define PUT(values, e, x) values[e] = x
#endif

// `first` is where the group's results begin. Without jumps: NVIDIA's driver keeps sums of f64 in memory where loops have some.
void store_sums(uvec2 lane, uint first, uint group, uint x_corner) {
#if WIDE_STORES && !ALONG_FILTERS
    [[unroll]] for (uint j = 0; j < PACKS_N; j++) {
        uint column = x_corner + (lane.y + j * LANES_N) * WIDTH;
        uint place = result_at(column_of(min(column, params.columns - 1)));
        [[unroll]] for (uint i = 0; i < PACKS_M * WIDTH; i++) {
            uint row = w_corner + (lane.x + i / WIDTH * LANES_M) * WIDTH + i % WIDTH;
            if (row < params.filters && column < params.columns) {
                STORED values = STORED(0);
                [[unroll]] for (uint e = 0; e < WIDTH; e++) {
                    T_VALUE sum = sums[i * COLUMNS + j * WIDTH + e];
                    PUT(values, e, TO_RESULT(sum, place + e, group * params.filters + row));
                }
                nxv_store(results, (first + place + row * params.result_filter) / WIDTH, values);
            }
        }
    }
#else
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
        uint column = x_corner + (lane.y + j / WIDTH * LANES_N) * WIDTH + j % WIDTH;
        uint place = result_at(column_of(min(column, params.columns - 1)));
#if WIDE_STORES
        [[unroll]] for (uint i = 0; i < PACKS_M; i++) {
            uint row = w_corner + (lane.x + i * LANES_M) * WIDTH;
            if (row < params.filters && column < params.columns) {
                STORED values = STORED(0);
                [[unroll]] for (uint e = 0; e < WIDTH; e++) {
                    T_VALUE sum = sums[(i * WIDTH + e) * COLUMNS + j];
                    PUT(values, e, TO_RESULT(sum, place, group * params.filters + row + e));
                }
                nxv_store(results, (first + place + row) / WIDTH, values);
            }
        }
#else
        [[unroll]] for (uint i = 0; i < PACKS_M * WIDTH; i++) {
            uint row = w_corner + (lane.x + i / WIDTH * LANES_M) * WIDTH + i % WIDTH;
            if (row < params.filters && column < params.columns) {
                T_VALUE sum = sums[i * COLUMNS + j];
                nxv_store(results, first + place + row * params.result_filter, TO_RESULT(sum, place, group * params.filters + row));
            }
        }
#endif
    }
#endif
}

void main() {
    uint job = params.first_workgroup + nxv_workgroup();
    if (job >= params.jobs) return;
    uint blocks = params.blocks_m * params.blocks_n;
    uint block = job % blocks;
    uint slab = job / blocks;
    uint group = slab % params.groups;
    uint start = slab / params.groups * params.chunk;
    depth_end = min(params.depth, start + params.chunk);
    uint own = gl_LocalInvocationIndex;
#if ALONG_FILTERS
    uvec2 lane = uvec2(own % LANES_M, own / LANES_M);
#else
    uvec2 lane = uvec2(own / LANES_N, own % LANES_N);
#endif
    w_corner = block % params.blocks_m * BLOCK_M;
    uint x_corner = block / params.blocks_m * BLOCK_N;
    w_first = params.kernel_first + group * params.kernel_group;
    [[unroll]] for (uint i = 0; i < OWN; i++) {
        Column column = column_of(min(x_corner + x_place(i).x, params.columns - 1));
        x_first[i] = params.x_first + group * params.x_group + column.batch * params.x_batch;
        corners[i] = corner_of(column);
    }
    [[unroll]] for (uint i = 0; i < PACKS_M * WIDTH * COLUMNS; i++) sums[i] = T_VALUE(0);

    look_up(0, start);
    look_up(1, start + BLOCK_K);
    barrier(); // the elements are known before anyone loads what they meet
    fetch(0, start);
    publish(0);
    barrier(); // the first step is complete, and its elements were read, before anyone goes on
    uint turn = 0;
    for (; start < depth_end; start += BLOCK_K) {
        bool more = start + BLOCK_K < depth_end;
        if (more) fetch(turn ^ 1, start + BLOCK_K);
        look_up(turn, start + 2 * BLOCK_K);
        multiply(turn, lane);
        if (more) publish(turn ^ 1);
        barrier(); // the other half is complete, and nobody still reads this one
        turn ^= 1;
    }

    store_sums(lane, slab / params.groups * params.results + group * params.result_group, group, x_corner);
}
