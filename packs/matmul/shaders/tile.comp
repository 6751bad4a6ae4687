#version 450
// One workgroup computes BLOCK_M x BLOCK_N elements of C, BLOCK_K steps of k at a time: the next step is loaded into
// registers while the current one is multiplied out of shared memory, whose two halves take turns. In the same way an
// invocation loads what it multiplies next, so that its multiplications wait neither for shared memory nor for a barrier.
// An invocation owns PACKS_M x PACKS_N squares of WIDTH x WIDTH, spread so that a subgroup's shared loads do not conflict.
// SLICES of the workgroup have the whole block each and a part of k, and add up in the end: where tiles are few, a compute unit
// has more subgroups to choose from.
#include "product.glsl"

layout(local_size_x = THREADS) in;

const uint OWN = THREADS / SLICES; // invocations of a slice
const uint WARPS_N = BLOCK_N / WARP_N;
const uint LANES_M = WARP_M / (PACKS_M * WIDTH);
const uint LANES_N = WARP_N / (PACKS_N * WIDTH);
const uint LANES = LANES_M * LANES_N;
const uint COLUMNS = PACKS_N * WIDTH; // of an invocation
const uint A_ITEMS = BLOCK_M * BLOCK_K / (OWN * A_STEP);
const uint B_ITEMS = BLOCK_N * BLOCK_K / (OWN * B_STEP);
// One pack of padding keeps the stores of an operand that arrives along k off each other's banks.
const uint A_ROW = BLOCK_M / WIDTH + 1;
const uint B_ROW = BLOCK_N / WIDTH + 1;
// Where both operands are loaded one element at a time, along m and n, f32 is up to a tenth faster on an H200 if what is stored for
// the next step is stored between multiplications; other products are slower for it.
const bool EARLY = WIDTH == 4 && BLOCK_K >= 4 && A_WIDE + B_WIDE + A_ALONG_K + B_ALONG_K == 0;
const uint GROUP_ROWS = 8; // rows of blocks that share their columns of B in the L2 cache

shared VEC a_tile[SLICES * 2 * BLOCK_K * A_ROW];
shared VEC b_tile[SLICES * 2 * BLOCK_K * B_ROW];

A_ITEM a_next[A_ITEMS];
B_ITEM b_next[B_ITEMS];
uint a_index[A_ITEMS];
uint b_index[B_ITEMS];
VEC rows[2][PACKS_M];
VEC columns[2][PACKS_N];
// One by one, since NVIDIA's compiler copies parts of vectors that are loop-carried.
T_VALUE sums[PACKS_M * WIDTH * COLUMNS];
uint k_end;

// An invocation's slice, and its number there.
uint slice() { return SLICES == 1 ? 0 : gl_LocalInvocationIndex / OWN; }
uint own() { return SLICES == 1 ? gl_LocalInvocationIndex : gl_LocalInvocationIndex % OWN; }

// Place of item `i` in the tile: x along m or n, y along k.
uvec2 a_place(uint i) {
    uint element = (own() + i * OWN) * A_STEP;
    return A_ALONG_K == 1 ? uvec2(element / BLOCK_K, element % BLOCK_K)
                          : uvec2(element % BLOCK_M, element / BLOCK_M);
}

uvec2 b_place(uint i) {
    uint element = (own() + i * OWN) * B_STEP;
    return B_ALONG_K == 1 ? uvec2(element / BLOCK_K, element % BLOCK_K)
                          : uvec2(element % BLOCK_N, element / BLOCK_N);
}

// Rows and columns beyond the edge repeat the last one: their sums are never stored.
void aim(uint batch, uvec2 corner) {
    [[unroll]] for (uint i = 0; i < A_ITEMS; i++) {
        uvec2 place = a_place(i);
        uint row = min(corner.x + place.x, m - (A_ALONG_K == 1 ? 1 : A_STEP));
        a_index[i] = a_offset + batch * a_batch + row * a_free + place.y * a_contract;
    }
    [[unroll]] for (uint i = 0; i < B_ITEMS; i++) {
        uvec2 place = b_place(i);
        uint column = min(corner.y + place.x, n - (B_ALONG_K == 1 ? 1 : B_STEP));
        b_index[i] = b_offset + batch * b_batch + column * b_free + place.y * b_contract;
    }
}

// The last step of k may be short: what lies beyond it is zero on both sides.
void fetch_step(uint start, bool whole) {
    [[unroll]] for (uint i = 0; i < A_ITEMS; i++) {
        a_next[i] = A_ITEM(0);
        if (whole || start + a_place(i).y < k_end) a_next[i] = load_a(a_index[i] + start * a_contract);
    }
    [[unroll]] for (uint i = 0; i < B_ITEMS; i++) {
        b_next[i] = B_ITEM(0);
        if (whole || start + b_place(i).y < k_end) b_next[i] = load_b(b_index[i] + start * b_contract);
    }
}

void fetch(uint start) {
    if (start + BLOCK_K <= k_end) fetch_step(start, true); else fetch_step(start, false);
}

void publish_a(uint turn) {
    [[unroll]] for (uint i = 0; i < A_ITEMS; i++) {
        uvec2 place = a_place(i);
        uint at = (turn * BLOCK_K + place.y) * A_ROW + place.x / WIDTH;
#if A_WIDE && A_ALONG_K
        [[unroll]] for (uint j = 0; j < WIDTH; j++) a_tile[at + j * A_ROW][place.x % WIDTH] = a_next[i][j];
#elif A_WIDE
        a_tile[at] = a_next[i];
#else
        a_tile[at][place.x % WIDTH] = a_next[i];
#endif
    }
}

void publish_b(uint turn) {
    [[unroll]] for (uint i = 0; i < B_ITEMS; i++) {
        uvec2 place = b_place(i);
        uint at = (turn * BLOCK_K + place.y) * B_ROW + place.x / WIDTH;
#if B_WIDE && B_ALONG_K
        [[unroll]] for (uint j = 0; j < WIDTH; j++) b_tile[at + j * B_ROW][place.x % WIDTH] = b_next[i][j];
#elif B_WIDE
        b_tile[at] = b_next[i];
#else
        b_tile[at][place.x % WIDTH] = b_next[i];
#endif
    }
}

void publish(uint turn) {
    publish_a(turn);
    publish_b(turn);
}

// What the invocation needs of the tile at `depth`.
void take(uint side, uint turn, uint depth, uvec2 packs) {
    uint a_at = (turn * BLOCK_K + depth) * A_ROW + packs.x;
    uint b_at = (turn * BLOCK_K + depth) * B_ROW + packs.y;
    [[unroll]] for (uint i = 0; i < PACKS_M; i++) rows[side][i] = a_tile[a_at + i * LANES_M];
    [[unroll]] for (uint i = 0; i < PACKS_N; i++) columns[side][i] = b_tile[b_at + i * LANES_N];
}

// A row is walked along and the next one back, so that what was read last is at hand.
void multiply(uint side) {
    [[unroll]] for (uint i = 0; i < PACKS_M * WIDTH; i++) {
        [[unroll]] for (uint step = 0; step < COLUMNS; step++) {
            uint j = i % 2 == 0 ? step : COLUMNS - 1 - step;
            uint at = i * COLUMNS + j;
            sums[at] = FMA(rows[side][i / WIDTH][i % WIDTH], columns[side][j / WIDTH][j % WIDTH], sums[at]);
        }
    }
}

// WIDTH sums of row `i`.
VEC pack_of(uint i, uint j) {
    VEC pack;
    [[unroll]] for (uint l = 0; l < WIDTH; l++) pack[l] = sums[i * COLUMNS + j * WIDTH + l];
    return pack;
}

// Corner of block `job` of a slab, walking down GROUP_ROWS rows of blocks before the next column.
uvec2 corner_of(uint job) {
    uint first = job / (GROUP_ROWS * blocks_n) * GROUP_ROWS;
    uint rows = min(blocks_m - first, GROUP_ROWS);
    uint rest = job - first * blocks_n;
    return uvec2((first + rest % rows) * BLOCK_M, rest / rows * BLOCK_N);
}

// Neighbouring lanes share a row or a column in pairs, which lets 128-bit shared loads be served half a subgroup at a time.
uvec2 own_packs() {
    uint lane = own() % LANES;
    uint warp = own() / LANES;
    uvec2 place = uvec2(lane % 2 + lane / (2 * LANES_N) * 2, lane / 2 % LANES_N);
    return uvec2(warp / WARPS_N, warp % WARPS_N) * uvec2(WARP_M, WARP_N) / WIDTH + place;
}

#if SLICES > 1
// Packs of each invocation that a_tile has room for.
const uint PACKS_AT_ONCE = SLICES * 2 * BLOCK_K * A_ROW / THREADS;

// Invocations of slices `apart` from each other, in pairs, give away one half of their rows and add up the other one.
void add_halves(uint rows, uint apart) {
    bool upper = (slice() & apart) != 0;
    uint me = gl_LocalInvocationIndex, other = me ^ (apart * OWN);
    uint packs = rows * PACKS_N, half_of = packs / 2;
    [[unroll]] for (uint first = 0; first < half_of; first += PACKS_AT_ONCE) {
        uint end = min(first + PACKS_AT_ONCE, half_of);
        barrier(); // nobody reads what a_tile has
        [[unroll]] for (uint p = first; p < end; p++) {
            VEC low = pack_of(p / PACKS_N, p % PACKS_N), high = pack_of((p + half_of) / PACKS_N, p % PACKS_N);
            a_tile[(p - first) * THREADS + me] = upper ? low : high;
        }
        barrier(); // all halves are there
        [[unroll]] for (uint p = first; p < end; p++) {
            VEC low = pack_of(p / PACKS_N, p % PACKS_N), high = pack_of((p + half_of) / PACKS_N, p % PACKS_N);
            VEC sum = (upper ? high : low) + a_tile[(p - first) * THREADS + other];
            [[unroll]] for (uint l = 0; l < WIDTH; l++) sums[p * WIDTH + l] = sum[l];
        }
    }
}

// Each slice stores the rows that it has added up.
void store_all(uint slab, uvec2 corner, uvec2 packs) {
    const uint rows = PACKS_M * WIDTH / SLICES;
#if SLICES == 8
    add_halves(8 * rows, 4);
#endif
#if SLICES >= 4
    add_halves(4 * rows, 2);
#endif
    add_halves(2 * rows, 1);
    [[unroll]] for (uint own_row = 0; own_row < rows; own_row++) {
        uint i = slice() * rows + own_row;
        uint row = corner.x + (packs.x + i / WIDTH * LANES_M) * WIDTH + i % WIDTH;
        [[unroll]] for (uint j = 0; j < PACKS_N; j++) {
            uint column = corner.y + (packs.y + j * LANES_N) * WIDTH;
            uint at = (slab * m + row) * n + column;
            if (row >= m) continue;
#if C_WIDE
            if (column < n) {
                Neighbours beside = neighbours_at(slab, row, column);
                c[at / WIDTH] = TO_C_PACK(beside, pack_of(own_row, j), slab, row, column);
            }
#else
            [[unroll]] for (uint l = 0; l < WIDTH; l++) {
                if (column + l < n) c[at + l] = TO_C(pack_of(own_row, j)[l], slab, row, column + l);
            }
#endif
        }
    }
}
#elif C_WIDE
void store_all(uint slab, uvec2 corner, uvec2 packs) {
    [[unroll]] for (uint first = 0; first < PACKS_M * WIDTH; first += WIDTH) {
        uint row = corner.x + (packs.x + first / WIDTH * LANES_M) * WIDTH;
        // Before any of them is stored: what is read between two stores waits for the first.
        Neighbours own[WIDTH * PACKS_N];
        [[unroll]] for (uint i = 0; i < WIDTH * PACKS_N; i++) {
            uint column = corner.y + (packs.y + i % PACKS_N * LANES_N) * WIDTH;
            own[i] = neighbours_at(slab, min(row + i / PACKS_N, m - 1), min(column, n - WIDTH));
        }
        [[unroll]] for (uint i = 0; i < WIDTH * PACKS_N; i++) {
            uint at_row = row + i / PACKS_N, column = corner.y + (packs.y + i % PACKS_N * LANES_N) * WIDTH;
            if (at_row < m && column < n) {
                c[((slab * m + at_row) * n + column) / WIDTH] =
                    TO_C_PACK(own[i], pack_of(first + i / PACKS_N, i % PACKS_N), slab, at_row, column);
            }
        }
    }
}
#else
// Rows that do not begin where packs do go through shared memory, so that neighbours store neighbours: AT_ONCE rows of each
// invocation at a time, HELD rows of the block for each of them.
const uint HELD = BLOCK_M / (PACKS_M * WIDTH);
const uint AT_ONCE = min(2 * BLOCK_K / HELD, PACKS_M * WIDTH);
// Invocations that store a row.
const uint BESIDE = min(BLOCK_N, 32);

void store_all(uint slab, uvec2 corner, uvec2 packs) {
    uint held = packs.x * WIDTH / WARP_M * LANES_M + packs.x % (WARP_M / WIDTH);
    [[unroll]] for (uint first = 0; first < PACKS_M * WIDTH; first += AT_ONCE) {
        barrier(); // nobody reads what b_tile has
        [[unroll]] for (uint i = 0; i < AT_ONCE; i++) {
            [[unroll]] for (uint j = 0; j < PACKS_N; j++) {
                b_tile[(i * HELD + held) * B_ROW + packs.y + j * LANES_N] = pack_of(first + i, j);
            }
        }
        barrier(); // the rows are complete
        for (uint staged = gl_LocalInvocationIndex / BESIDE; staged < AT_ONCE * HELD; staged += THREADS / BESIDE) {
            uint i = first + staged / HELD, lane = staged % HELD;
            uint row = corner.x + lane / LANES_M * WARP_M + (lane % LANES_M + i / WIDTH * LANES_M) * WIDTH + i % WIDTH;
            uint own = gl_LocalInvocationIndex % BESIDE, column = corner.y + own;
            uint at = (slab * m + row) * n + column;
            [[unroll]] for (uint j = 0; j < BLOCK_N; j += BESIDE) {
                T_VALUE value = b_tile[staged * B_ROW + (own + j) / WIDTH][own % WIDTH];
                if (row < m && column + j < n) c[at + j] = TO_C(value, slab, row, column + j);
            }
        }
    }
}
#endif

// Slices take as many steps as each other: beyond the end of k all is zero.
#if SLICES > 1
#define MORE --steps > 0
#else
#define MORE start + BLOCK_K < k_end
#endif

void main() {
    if (workgroup() >= jobs) return;
    uint slab = workgroup() / (blocks_m * blocks_n);
    uvec2 corner = corner_of(workgroup() % (blocks_m * blocks_n));
    uvec2 packs = own_packs();
    uint start = slab / batches * chunk;
    k_end = min(k, start + chunk);
#if SLICES > 1
    uint steps = (k_end - start + SLICES * BLOCK_K - 1) / (SLICES * BLOCK_K);
    start += slice() * steps * BLOCK_K;
    k_end = min(k_end, start + steps * BLOCK_K);
#endif
    aim(slab % batches, corner);
    [[unroll]] for (uint i = 0; i < PACKS_M * WIDTH * COLUMNS; i++) sums[i] = T_VALUE(0);

    uint turn = 2 * slice();
    fetch(start);
    publish(turn);
    barrier(); // the first step is complete before anyone reads it
    take(0, turn, 0, packs);
    while (MORE) {
        start += BLOCK_K;
        fetch(start);
        [[unroll]] for (uint depth = 0; depth + 1 < BLOCK_K; depth++) {
            take((depth + 1) % 2, turn, depth + 1, packs);
            multiply(depth % 2);
            // Nobody has read the other half since the last barrier.
            if (EARLY && depth + 4 == BLOCK_K) publish_a(turn ^ 1);
            if (EARLY && depth + 3 == BLOCK_K) publish_b(turn ^ 1);
        }
        turn ^= 1;
        if (!EARLY) publish(turn);
        barrier(); // the other half is complete, and nobody still reads this one
        take(0, turn, 0, packs);
        multiply(1);
    }
    [[unroll]] for (uint depth = 0; depth + 1 < BLOCK_K; depth++) {
        take((depth + 1) % 2, turn, depth + 1, packs);
        multiply(depth % 2);
    }
    multiply(1);

    store_all(slab, corner, packs);
}
