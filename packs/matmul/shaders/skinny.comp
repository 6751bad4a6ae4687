#version 450
// C with at most a few columns: memory-bound, so every element of A is read once, along its fast axis.
// ALONG invocations share the contracted axis and the others stand next to each other along m; each keeps OWN_M items of
// rows for all COLUMNS, and a tree in shared memory adds up what the ALONG invocations have.
#include "product.glsl"

layout(local_size_x = THREADS) in;

#if A_ALONG_K
#define DEPTH A_STEP
#define ROW_STEP 1
#else
#define DEPTH 1
#define ROW_STEP A_STEP
#endif

const uint ACROSS = THREADS / ALONG;
const uint RESULTS = OWN_M * ROW_STEP * COLUMNS;
const uint PITCH = RESULTS * ACROSS;

shared T_VALUE results[ALONG * PITCH];

uint a_index[OWN_M];
uint b_index;
A_ITEM sums[OWN_M * COLUMNS];

// What the items of A at k are multiplied with.
A_ITEM factor(uint k_at, uint column) {
    uint index = b_index + k_at * b_contract + column * b_free;
#if B_WIDE || !A_WIDE || !A_ALONG_K
    return A_ITEM(load_b(index));
#elif WIDTH == 4
    return VEC(load_b(index), load_b(index + b_contract), load_b(index + 2 * b_contract), load_b(index + 3 * b_contract));
#else
    return VEC(load_b(index), load_b(index + b_contract));
#endif
}

void accumulate(uint k_at) {
    A_ITEM items[OWN_M];
    [[unroll]] for (uint i = 0; i < OWN_M; i++) items[i] = load_a(a_index[i] + k_at * a_contract);
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
        A_ITEM value = factor(k_at, j);
        [[unroll]] for (uint i = 0; i < OWN_M; i++) sums[i * COLUMNS + j] = FMA(items[i], value, sums[i * COLUMNS + j]);
    }
}

void spread(uvec2 place) {
    [[unroll]] for (uint i = 0; i < OWN_M; i++) {
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
            A_ITEM item = sums[i * COLUMNS + j];
            uint at = place.y * PITCH + (i * ROW_STEP * COLUMNS + j) * ACROSS + place.x;
#if !A_WIDE
            results[at] = item;
#elif !A_ALONG_K
            [[unroll]] for (uint l = 0; l < WIDTH; l++) results[at + l * COLUMNS * ACROSS] = item[l];
#elif WIDTH == 4
            results[at] = (item.x + item.y) + (item.z + item.w);
#else
            results[at] = item.x + item.y;
#endif
        }
    }
}

void main() {
    if (workgroup() >= jobs) return;
    uint lane = gl_LocalInvocationIndex;
    uvec2 place = A_ALONG_K == 1 ? uvec2(lane / ALONG, lane % ALONG) : uvec2(lane % ACROSS, lane / ACROSS);
    uint slab = workgroup() / blocks_m;
    uint corner = workgroup() % blocks_m * (OWN_M * ROW_STEP * ACROSS);
    [[unroll]] for (uint i = 0; i < OWN_M; i++) {
        uint row = min(corner + (i * ACROSS + place.x) * ROW_STEP, m - ROW_STEP);
        a_index[i] = a_offset + slab % batches * a_batch + row * a_free;
    }
    b_index = b_offset + slab % batches * b_batch;
    [[unroll]] for (uint i = 0; i < OWN_M * COLUMNS; i++) sums[i] = A_ITEM(0);

    uint k_at = slab / batches * chunk;
    uint end = min(k, k_at + chunk);
    k_at += place.y * DEPTH;
    for (; k_at + (UNROLL - 1) * ALONG * DEPTH < end; k_at += UNROLL * ALONG * DEPTH) {
        [[unroll]] for (uint i = 0; i < UNROLL; i++) accumulate(k_at + i * ALONG * DEPTH);
    }
    for (; k_at < end; k_at += ALONG * DEPTH) accumulate(k_at);

    spread(place);
    [[unroll]] for (uint rest = ALONG / 2; rest > 0; rest /= 2) {
        barrier(); // the sums of the upper half are complete
        for (uint i = lane; i < rest * PITCH; i += THREADS) results[i] += results[i + rest * PITCH];
    }
    barrier(); // the totals are complete
    for (uint i = lane; i < PITCH; i += THREADS) {
        uint value = i / ACROSS;
        uint item = value / COLUMNS;
        uint row = corner + (item / ROW_STEP * ACROSS + i % ACROSS) * ROW_STEP + item % ROW_STEP;
        if (row < m) c[slab * m * n + row * c_row + value % COLUMNS * c_column] = TO_C(results[i]);
    }
}
