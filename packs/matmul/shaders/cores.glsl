// What kernels on matrix units share: where a subgroup works, and how it stores what it has.
//
// The roles are exchanged, C^T = B^T A^T: then a fragment is whole registers of one load, and 8 results of a row lie in one
// lane. Along k the order is anything, as long as A and B have the same.
#include "fragments.glsl"

#define TILES (WARP_M / 16)
#ifndef PARTS
#define PARTS 1
#endif
// What a workgroup has along m and n of what a subgroup owns. PARTS subgroups share it: each takes a part of k.
#ifndef WARPS_M
#define WARPS_M 2
#endif
#ifndef WARPS_N
#define WARPS_N 2
#endif
#define PLACE (gl_SubgroupID / PARTS)
#define SHARE (gl_SubgroupID % PARTS)
#define WARPS (WARPS_M * WARPS_N)
layout(local_size_x = 32 * WARPS * PARTS) in;

// The host tells elements along k, else steps.
#if IN_PLACE || defined(ORIGINALS)
#define COUNTS_K 1
#endif
layout(push_constant) uniform Product {
    uint m, n;
    uint batches;
    uint tiles;      // of 16 rows of packed A, of one batch; 0 where all batches have the same
    uint columns_b;  // blocks of 64 columns of packed B, of one batch; 0 likewise
#if COUNTS_K
    uint k;          // elements along k
#else
    uint steps;      // of DEPTH along k, an even number
#endif
    uint chunk;      // steps of one split, an even number
    uint blocks_m, blocks_n; // workgroups of a slab, which is one batch of one split
    uint jobs;       // workgroups with work to do
#if IN_PLACE
    // In units of 8 elements; steps of rows of A and of columns of B, or of k where rows or columns are neighbours.
    uint offset_a, batch_a, step_a;
    uint offset_b, batch_b, step_b;
#endif
#ifdef ORIGINALS
    // The operands before they were packed.
    uint a_offset, a_batch, a_free, a_contract;
    uint b_offset, b_batch, b_free, b_contract;
#endif
#ifdef EPILOGUE_WORDS
    uint epilogue[EPILOGUE_WORDS];
#endif
};
#if COUNTS_K
#define steps ((k + 2 * DEPTH - 1) / (2 * DEPTH) * 2)
#endif
#ifdef EPILOGUE
#include "epilogue.glsl"
#define VALUE R_VALUE
#define VALUE4 R_VALUE4
#define FINISH(own, i, x, row, column) finished(own, i, x, slab, row, column)
#define FINISH4(own, i, v, row, column) \
    VALUE4(FINISH(own, i, v.x, row, column), FINISH(own, i + 1, v.y, row, (column) + 1), \
           FINISH(own, i + 2, v.z, row, (column) + 2), FINISH(own, i + 3, v.w, row, (column) + 3))
#else
#define VALUE SUM
#define VALUE4 SUM4
#define E_RUN 1
#define AHEAD 1
#define Neighbours uint
#define neighbours_at(slab, row, column) 0u
#define FINISH(own, i, x, row, column) (x)
#define FINISH4(own, i, v, row, column) (v)
#endif

// Rows of A that are neighbours are loaded as many at once as a lane has of all tiles, two of each.
#define A_ACROSS (IN_PLACE && !A_PACKED && !A_ALONG_K)
#if !A_ACROSS || TILES == 4
#define A_RUN uvec4
#elif TILES == 2
#define A_RUN uvec2
#else
#define A_RUN uint
#endif
layout(set = 0, binding = 0, std430) readonly restrict buffer A { A_RUN a[]; };
layout(set = 0, binding = 1, std430) readonly restrict buffer B { uvec4 b[]; };
#if defined(T_IS_S32)
#define RESULT4 ivec4
#elif defined(T_IS_U32)
#define RESULT4 uvec4
#else
#define RESULT4 vec4
#endif
#if C_WIDE && C_WORDS
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { RESULT4 c[]; };
#elif C_WIDE
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { uvec4 c[]; };
#elif C_PAIRS
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { uint c[]; };
#else
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { T_STORAGE c[]; };
#endif

// By tile of 16 columns of C and tile of 16 rows.
SUMS sums[4][TILES];

// Row i of row tile j.
#if A_ACROSS
#define ROW_AT(j, i) (2 * TILES * ((i) >> 1) + 2 * (j) + ((i) & 1))
#else
#define ROW_AT(j, i) (16 * (j) + (i))
#endif

// A result as it is stored.
#if defined(T_IS_F16)
// NVIDIA's conversion rounds to nearest, ties to even; nxv_store_f16 takes a third of the time of a small product.
#define NARROWED(x) uint16_t(packFloat2x16(f16vec2(x, 0.0)))
uint both(VALUE x, VALUE y) {
    return packFloat2x16(f16vec2(x, y));
}
#else
#define NARROWED(x) T_STORE(T_VALUE(x))
uint both(VALUE x, VALUE y) {
    return (uint(NARROWED(x)) & 0xffffu) | (uint(NARROWED(y)) << 16);
}
#endif

#if C_WIDE
// What 8 results of a row from `column` on have of an epilogue's operands; nothing is beyond the last column.
struct Eight {
    Neighbours first;
#if C_WORDS
    Neighbours second;
#endif
};

Eight eight_at(uint slab, uint row, uint column) {
    uint last = n - E_RUN;
    Eight own;
    own.first = neighbours_at(slab, min(row, m - 1), min(column, last));
#if C_WORDS
    own.second = neighbours_at(slab, min(row, m - 1), min(column + 4, last));
#endif
    return own;
}

// 8 results of a row from `column` on; those beyond the last column are dropped.
void store(Eight own, uint slab, uint row, uint column, SUM4 x, SUM4 y) {
    uint at = (slab * m + row) * n + column;
#if C_WORDS
    if (column < n) c[at / 4] = RESULT4(FINISH4(own.first, 0, x, row, column));
    if (column + 4 < n) c[at / 4 + 1] = RESULT4(FINISH4(own.second, 0, y, row, column + 4));
#else
    if (column < n) {
        VALUE4 p = FINISH4(own.first, 0, x, row, column), q = FINISH4(own.first, 4, y, row, column + 4);
        c[at / 8] = uvec4(both(p.x, p.y), both(p.z, p.w), both(q.x, q.y), both(q.z, q.w));
    }
#endif
}
#endif
#if !C_WIDE || PARTS > 1
// Of each subgroup a tile of 16 rows: to be added up, or for rows that do not begin where vectors do. There lanes that hold 8
// columns each would write one element of as many sectors of memory at a time.
const uint PITCH = 17;
shared SUM4 staged[WARPS * PARTS * 16 * PITCH];

void stage(uint row, uint column, SUM4 x, SUM4 y) {
    uint at = (gl_SubgroupID * 16 + row) * PITCH + column / 4;
    staged[at] = x;
    staged[at + 1] = y;
}

#if !C_WIDE
// What is stored at once, two elements of 16 bits or one, and how many of that the columns of a tile are.
#if C_PAIRS
#define RUN_OF_C 2
#else
#define RUN_OF_C 1
#endif
#define RUNS (64 / RUN_OF_C)

void store_run(uint slab, uvec2 place, SUM run[RUN_OF_C]) {
    if (place.x >= m || place.y >= n) return;
    uint at = (slab * m + place.x) * n + place.y;
    VALUE x = FINISH(0u, 0, run[0], place.x, place.y);
#if C_PAIRS
    c[at / 2] = both(x, FINISH(0u, 0, run[1], place.x, place.y + 1));
#else
    c[at] = NARROWED(x);
#endif
}
#endif

#if PARTS > 1
SUM4 sum_of_parts(uint row, uint column) {
    uint first = PLACE * PARTS;
    SUM4 sum = staged[(first * 16 + row) * PITCH + column / 4];
    [[unroll]] for (uint part = 1; part < PARTS; part++)
        sum += staged[((first + part) * 16 + row) * PITCH + column / 4];
    return sum;
}

// The sums of all parts go to memory.
void store_staged(uint slab, uvec2 from, uint tile) {
    barrier(); // the tiles are complete
    uint local = SHARE * 32 + gl_SubgroupInvocationID;
#if C_WIDE
    [[unroll]] for (uint turn = 0; turn < (4 + PARTS - 1) / PARTS; turn++) {
        uint run = turn * 32 * PARTS + local;
        uvec2 own = uvec2(run / 8, run % 8 * 8);
        uvec2 place = from + uvec2(ROW_AT(tile, own.x), own.y);
        if (own.x < 16 && place.x < m) {
            Eight ahead = eight_at(slab, place.x, place.y);
            store(ahead, slab, place.x, place.y, sum_of_parts(own.x, own.y), sum_of_parts(own.x, own.y + 4));
        }
    }
#else
    for (uint i = local; i < 16 * RUNS; i += 32 * PARTS) {
        uvec2 own = uvec2(i / RUNS, i % RUNS * RUN_OF_C);
        SUM4 four = sum_of_parts(own.x, own.y);
        SUM run[RUN_OF_C];
        [[unroll]] for (uint e = 0; e < RUN_OF_C; e++) run[e] = four[own.y % 4 + e];
        store_run(slab, from + uvec2(ROW_AT(tile, own.x), own.y), run);
    }
#endif
    barrier(); // nobody still reads them
}
#else
// What is staged goes to memory, neighbours by neighbouring lanes. All of a turn is loaded before any of it is stored: else each would
// wait for the one before.
void store_staged(uint slab, uvec2 from, uint tile) {
    const uint TURN = RUNS / 8; // runs of a lane in four rows
    subgroupBarrier(); // the tile is complete
    for (uint first = 0; first < 16; first += 4) {
        SUM runs[TURN][RUN_OF_C];
        uvec2 places[TURN];
        [[unroll]] for (uint i = 0; i < TURN; i++) {
            uint run = i * 32 + gl_SubgroupInvocationID;
            uvec2 own = uvec2(first + run / RUNS, run % RUNS * RUN_OF_C);
            uint at = (gl_SubgroupID * 16 + own.x) * PITCH + own.y / 4;
            [[unroll]] for (uint e = 0; e < RUN_OF_C; e++) runs[i][e] = staged[at][own.y % 4 + e];
            places[i] = from + uvec2(ROW_AT(tile, own.x), own.y);
        }
        [[unroll]] for (uint i = 0; i < TURN; i++) store_run(slab, places[i], runs[i]);
    }
    subgroupBarrier(); // nobody still reads it
}
#endif
#endif

// The corner of what a subgroup owns. Workgroups walk in bands of BAND rows of blocks: those that run together share rows
// and columns in the L2 cache.
uvec2 corner(uint job) {
    uint first = job / (BAND * blocks_n) * BAND;
    uint rows = min(blocks_m - first, BAND);
    uint rest = job - first * blocks_n;
    uvec2 block = uvec2(first + rest % rows, rest / rows) * uvec2(WARPS_M, WARPS_N);
    return (block + uvec2(PLACE / WARPS_N, PLACE % WARPS_N)) * uvec2(WARP_M, 64);
}

// Everything that the subgroup has. Element r of a row tile: its row 4t + 2 (r & 1) + (r & 2) / 2, columns 8g to 8g + 7.
void store_all(uint slab, uvec2 from) {
    uint g = gl_SubgroupInvocationID >> 2, t = gl_SubgroupInvocationID & 3;
#define ROW(r) (4 * t + 2 * ((r) & 1) + ((r) >> 1))
#define STORES_AT_ONCE (C_WIDE && PARTS == 1)
#if STORES_AT_ONCE
    Eight own[4 * AHEAD]; // of AHEAD tiles
#endif
    [[unroll]] for (uint j = 0; j < TILES; j++) {
#if STORES_AT_ONCE
        if (j % AHEAD == 0) {
            [[unroll]] for (uint i = 0; i < 4 * AHEAD; i++)
                own[i] = eight_at(slab, from.x + ROW_AT(j + i / 4, ROW(i % 4)), from.y + 8 * g);
        }
#endif
        [[unroll]] for (uint r = 0; r < 4; r++) {
            SUM4 x = SUM4(sums[0][j][r], sums[0][j][r + 4], sums[1][j][r], sums[1][j][r + 4]);
            SUM4 y = SUM4(sums[2][j][r], sums[2][j][r + 4], sums[3][j][r], sums[3][j][r + 4]);
#if STORES_AT_ONCE
            uint row = from.x + ROW_AT(j, ROW(r));
            if (row < m) store(own[j % AHEAD * 4 + r], slab, row, from.y + 8 * g, x, y);
#else
            stage(ROW(r), 8 * g, x, y);
#endif
        }
#if !STORES_AT_ONCE
        store_staged(slab, from, j);
#endif
    }
}
