#version 450
// One invocation computes OWN_M x OWN_N elements of C straight from memory. With SHARED_ROWS a workgroup is one subgroup whose
// invocations have the same rows: each loads its part of A and hands it to the others. Without, invocations are numbered through.
// The columns of an invocation are APART from each other, so that where packs do not fit neighbours store neighbours.
#include "product.glsl"
#if SHARED_ROWS
#extension GL_KHR_shader_subgroup_ballot : require
#endif

layout(local_size_x = THREADS) in;

#if SHARED_ROWS
#define HOLDERS THREADS
#else
#define HOLDERS 1
#endif

// Packs along k serve as many steps.
#define A_DEEP (A_WIDE && A_ALONG_K)
#define B_DEEP (B_WIDE && B_ALONG_K)
#if A_DEEP || B_DEEP
#define DEPTH WIDTH
#else
#define DEPTH 1
#endif

#if A_DEEP
#define ELEMENT(row, depth) rows[(row) / HOLDERS][depth]
#elif A_WIDE
#define ELEMENT(row, depth) rows[(row) / WIDTH][(row) % WIDTH]
#else
#define ELEMENT(row, depth) rows[(row) / HOLDERS]
#endif

#if SHARED_ROWS
#define FACTOR(row, depth) subgroupBroadcast(ELEMENT(row, depth), (row) % HOLDERS)
#else
#define FACTOR(row, depth) ELEMENT(row, depth)
#endif

const uint A_ROWS = A_ALONG_K == 1 ? 1 : A_STEP;
const uint A_ITEMS = OWN_M / (A_ROWS * HOLDERS);
const uint B_COLUMNS = B_ALONG_K == 1 ? 1 : B_STEP;
const uint B_ITEMS = OWN_N / B_COLUMNS;

uint a_index[A_ITEMS];
uint b_index[B_ITEMS];
T_VALUE sums[OWN_M * OWN_N];

// Rows and columns beyond the edge repeat the last one: their sums are never stored.
void aim(uint batch, uint row, uint column) {
    [[unroll]] for (uint i = 0; i < A_ITEMS; i++) {
        uint own = min(row + i * A_ROWS * HOLDERS + gl_LocalInvocationIndex % HOLDERS, m - A_ROWS);
        a_index[i] = a_offset + batch * a_batch + own * a_free;
    }
    [[unroll]] for (uint i = 0; i < B_ITEMS; i++) {
        b_index[i] = b_offset + batch * b_batch + min(column + i * B_COLUMNS * APART, n - B_COLUMNS) * b_free;
    }
}

void accumulate(uint k_at) {
    A_ITEM rows[A_ITEMS];
#if A_DEEP
    [[unroll]] for (uint i = 0; i < A_ITEMS; i++) rows[i] = load_a(a_index[i] + k_at * a_contract);
#endif
#if B_DEEP
    B_ITEM packs[B_ITEMS];
    [[unroll]] for (uint j = 0; j < B_ITEMS; j++) packs[j] = load_b(b_index[j] + k_at * b_contract);
#endif
    [[unroll]] for (uint depth = 0; depth < DEPTH; depth++) {
#if !A_DEEP
        [[unroll]] for (uint i = 0; i < A_ITEMS; i++) rows[i] = load_a(a_index[i] + (k_at + depth) * a_contract);
#endif
        [[unroll]] for (uint j = 0; j < B_ITEMS; j++) {
#if B_DEEP
            T_VALUE columns = packs[j][depth];
#else
            B_ITEM columns = load_b(b_index[j] + (k_at + depth) * b_contract);
#endif
            [[unroll]] for (uint i = 0; i < OWN_M; i++) {
#if B_WIDE && !B_DEEP
                [[unroll]] for (uint l = 0; l < WIDTH; l++) {
                    uint at = i * OWN_N + j * WIDTH + l;
                    sums[at] = FMA(FACTOR(i, depth), columns[l], sums[at]);
                }
#else
                sums[i * OWN_N + j] = FMA(FACTOR(i, depth), columns, sums[i * OWN_N + j]);
#endif
            }
        }
    }
}

void main() {
#if SHARED_ROWS
    uint job = workgroup();
#else
    uint job = workgroup() * THREADS + gl_LocalInvocationIndex;
#endif
    if (job >= jobs) return;
    uint slab = job / (blocks_m * blocks_n);
    uint block = job % (blocks_m * blocks_n);
#if SHARED_ROWS
    uint row = block % blocks_m * OWN_M;
    uint column = (block / blocks_m * THREADS + gl_LocalInvocationIndex) * OWN_N;
#else
    uint row = block / blocks_n * OWN_M;
    uint across = block % blocks_n;
    uint column = across / APART * (OWN_N * APART) + across % APART;
#endif
    aim(slab % batches, row, column);
    [[unroll]] for (uint i = 0; i < OWN_M * OWN_N; i++) sums[i] = T_VALUE(0);
    uint end = min(k, slab / batches * chunk + chunk);
    for (uint k_at = slab / batches * chunk; k_at < end; k_at += DEPTH) accumulate(k_at);

    [[unroll]] for (uint i = 0; i < OWN_M; i++) {
        if (row + i >= m) break;
        uint index = (slab * m + row + i) * n + column;
#if C_WIDE
        [[unroll]] for (uint j = 0; j < OWN_N; j += WIDTH) {
            uint at = i * OWN_N + j;
#if WIDTH == 4
            VEC values = VEC(sums[at], sums[at + 1], sums[at + 2], sums[at + 3]);
#else
            VEC values = VEC(sums[at], sums[at + 1]);
#endif
            if (column + j < n) c[(index + j) / WIDTH] =
                TO_C_PACK(neighbours_at(slab, row + i, column + j), values, slab, row + i, column + j);
        }
#else
        [[unroll]] for (uint j = 0; j < OWN_N; j++) {
            uint at = j * APART;
            if (column + at < n) c[index + at] = TO_C(sums[i * OWN_N + j], slab, row + i, column + at);
        }
#endif
    }
}
