#version 450
// C with few columns, or blocks of few: memory-bound, so every element of A is read once for each block, along its fast axis, in packs
// of A_ELEMENTS.
// ALONG invocations share the contracted axis and the others stand next to each other along m; each keeps OWN_M packs (or
// rows) for COLUMNS columns, and a tree in shared memory adds up what the ALONG invocations have, GROUP columns at a time.
#if SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#define OWN_LOADS 1
#include "product.glsl"

layout(local_size_x = THREADS) in;

#if A_ALONG_K
#define DEPTH A_ELEMENTS
#define ROW_STEP 1
#else
#define DEPTH 1
#define ROW_STEP A_ELEMENTS
#endif

const uint ACROSS = THREADS / ALONG;
const uint ROWS = OWN_M * ROW_STEP;
const uint PITCH = GROUP * ROWS * ACROSS;
// Invocations of a subgroup that share the contracted axis, how far from each other they are, and how many sums are left of each
// after they have added up theirs.
#if SUBGROUP
const uint APART = A_ALONG_K == 1 ? 1 : ACROSS;
const uint TOGETHER = A_ALONG_K == 1 ? min(ALONG, SUBGROUP) : max(SUBGROUP / ACROSS, 1);
const uint LEFT = 32;
#else
const uint APART = 1;
const uint TOGETHER = 1;
const uint LEFT = 1;
#endif
const uint REST = ALONG / TOGETHER;

shared T_VALUE results[REST * PITCH];

uint a_index[OWN_M];
uint b_index[COLUMNS];
T_VALUE sums[ROWS * COLUMNS];

// The f16 in the lower half of a word. Subnormal numbers are moved among normal ones and back, which is exact.
float from_f16(uint bits) {
#ifdef NXV_NATIVE_HALF
    return unpackHalf2x16(bits).x;
#endif
    uint magnitude = (bits & 0x7fffu) << 13;
    float subnormal = uintBitsToFloat(magnitude + 0x38800000u) - 6.103515625e-5;
    uint normal = magnitude + (magnitude < 0x0f800000u ? 0x38000000u : 0x70000000u);
    return uintBitsToFloat((bits & 0x8000u) << 16 | (magnitude < 0x00800000u ? floatBitsToUint(subnormal) : normal));
}

// A byte from 0 to 255, less `bias`: as the last bits of 2^23.
float from_byte(uint bits, float bias) {
    return uintBitsToFloat(0x4b000000u | bits) - (8388608.0 + bias);
}

// Elements from the one at `index` on.
#if A_WORDS
layout(set = 0, binding = 0, std430) readonly restrict buffer A { A_WORD_PACK a[]; };
#define A_LOADED A_WORD_PACK
#else
layout(set = 0, binding = 0, std430) readonly restrict buffer A { A_STORAGE a[]; };
#define A_LOADED A_STORAGE
#undef A_ELEMENT
#define A_ELEMENT(x, i) A_GET(x)
#endif

#if B_WORDS
layout(set = 0, binding = 1, std430) readonly restrict buffer B { B_WORD_PACK b[]; };
void load_b(uint index, out T_VALUE elements[DEPTH]) {
    [[unroll]] for (uint i = 0; i < DEPTH; i += B_ELEMENTS) {
        B_WORD_PACK words = b[(index + i) / B_ELEMENTS];
        [[unroll]] for (uint j = 0; j < B_ELEMENTS; j++) elements[i + j] = B_ELEMENT(words, j);
    }
}
#else
layout(set = 0, binding = 1, std430) readonly restrict buffer B { B_STORAGE b[]; };
void load_b(uint index, out T_VALUE elements[DEPTH]) {
    [[unroll]] for (uint i = 0; i < DEPTH; i++) elements[i] = B_GET(b[index + i * b_contract]);
}
#endif

// `count` steps from k on, at most UNROLL: all loads of A come first, so that memory is never waited for one load at a time.
void accumulate(uint k_at, uint count) {
    A_LOADED loaded[UNROLL * OWN_M];
    [[unroll]] for (uint step = 0; step < count; step++) {
        [[unroll]] for (uint i = 0; i < OWN_M; i++) {
            loaded[step * OWN_M + i] = a[(a_index[i] + (k_at + step * ALONG * DEPTH) * a_contract) / A_ELEMENTS];
        }
    }
    [[unroll]] for (uint step = 0; step < count; step++) {
        T_VALUE items[OWN_M * A_ELEMENTS];
        [[unroll]] for (uint i = 0; i < OWN_M * A_ELEMENTS; i++) {
            items[i] = A_ELEMENT(loaded[step * OWN_M + i / A_ELEMENTS], i % A_ELEMENTS);
        }
        [[unroll]] for (uint column = 0; column < COLUMNS; column++) {
            T_VALUE factors[DEPTH];
            load_b(b_index[column] + (k_at + step * ALONG * DEPTH) * b_contract, factors);
            [[unroll]] for (uint i = 0; i < OWN_M; i++) {
                [[unroll]] for (uint j = 0; j < A_ELEMENTS; j++) {
                    uint at = (i * ROW_STEP + j % ROW_STEP) * COLUMNS + column;
                    sums[at] = FMA(items[i * A_ELEMENTS + j], factors[j % DEPTH], sums[at]);
                }
            }
        }
    }
}

// The sum of a row and column. Where columns come by groups NVIDIA's driver does not know which those of one are when it compiles, and
// with an index that it does not know it keeps all sums of f64 in memory: 800 us instead of 171 for 8 x 4096 by 4096 x 11008.
T_VALUE sum_of(uint row, uint column) {
#if COLUMNS > GROUP
    T_VALUE sum = sums[row * COLUMNS];
    [[unroll]] for (uint other = 1; other < COLUMNS; other++) sum = other == column ? sums[row * COLUMNS + other] : sum;
    return sum;
#else
    return sums[row * COLUMNS + column];
#endif
}

T_VALUE from_subgroup(T_VALUE sum) {
#if SUBGROUP
    [[unroll]] for (uint mask = APART; mask < APART * TOGETHER; mask *= 2) sum += subgroupShuffleXor(sum, mask);
#endif
    return sum;
}

// Sums of GROUP columns from `first` on, at most LEFT of each, PITCH elements apart from the start of `results` on.
void add_up(uvec2 place, uint first) {
    barrier(); // nobody reads what the columns before left
    [[unroll]] for (uint i = 0; i < ROWS * GROUP; i++) {
        uint column = min(first + i % GROUP, COLUMNS - 1);
        T_VALUE sum = from_subgroup(sum_of(i / GROUP, column));
        if (place.y % TOGETHER == 0) results[place.y / TOGETHER * PITCH + i * ACROSS + place.x] = sum;
    }
    [[unroll]] for (uint rest = REST / 2; rest >= LEFT; rest /= 2) {
        barrier(); // the sums of the upper half are complete
        for (uint i = gl_LocalInvocationIndex; i < rest * PITCH; i += THREADS) results[i] += results[i + rest * PITCH];
    }
    barrier(); // they are complete
}

T_VALUE total(uint at) {
    T_VALUE sum = results[at];
    [[unroll]] for (uint i = 1; i < min(LEFT, REST); i++) sum += results[at + i * PITCH];
    return sum;
}

void main() {
    if (workgroup() >= jobs) return;
#if SUBGROUP
    // Neighbours in a subgroup are neighbours here, whatever order the device gives gl_LocalInvocationIndex.
    uint lane = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID;
#else
    uint lane = gl_LocalInvocationIndex;
#endif
    uvec2 place = A_ALONG_K == 1 ? uvec2(lane / ALONG, lane % ALONG) : uvec2(lane % ACROSS, lane / ACROSS);
    uint slab = workgroup() / (blocks_m * blocks_n);
    uint first_column = workgroup() / blocks_m % blocks_n * COLUMNS;
    uint corner = workgroup() % blocks_m * (ROWS * ACROSS);
    // Rows and columns beyond the edge repeat the last one: their sums are never stored.
    [[unroll]] for (uint i = 0; i < OWN_M; i++) {
        uint row = min(corner + (i * ACROSS + place.x) * ROW_STEP, m - ROW_STEP);
        a_index[i] = a_offset + slab % batches * a_batch + row * a_free;
    }
    [[unroll]] for (uint i = 0; i < COLUMNS; i++) {
        b_index[i] = b_offset + slab % batches * b_batch + min(first_column + i, n - 1) * b_free;
    }
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) sums[i] = T_VALUE(0);

    uint k_at = slab / batches * chunk;
    uint end = min(k, k_at + chunk);
    k_at += place.y * DEPTH;
    for (; k_at + (UNROLL - 1) * ALONG * DEPTH < end; k_at += UNROLL * ALONG * DEPTH) accumulate(k_at, UNROLL);
    for (; k_at < end; k_at += ALONG * DEPTH) accumulate(k_at, 1);

    [[unroll]] for (uint first = 0; first < COLUMNS; first += GROUP) {
        add_up(place, first);
        for (uint i = lane; i < PITCH; i += THREADS) {
            uint value = i / ACROSS;
            uint own = value / GROUP;
            uint row = corner + (own / ROW_STEP * ACROSS + i % ACROSS) * ROW_STEP + own % ROW_STEP;
            uint own_column = first + value % GROUP, column = first_column + own_column;
            if (row < m && own_column < COLUMNS && column < n) {
                c[slab * m * n + row * c_row + column * c_column] = TO_C(total(i), slab, row, column);
            }
        }
    }
}
