#version 450
#pragma use_vulkan_memory_model
// C = A B on matrix units, whichever elements of a fragment a lane holds: fragments are loaded from shared memory by
// coopMatLoad, and sums are stored there by coopMatStore before lanes finish them. A workgroup computes BM x BN of C, each of
// its subgroups WM x WN, BK elements of k at a time.
//
// One step along k lies in shared memory and is multiplied while the next one is written there, and the one after that is on
// its way from memory, in registers. Fragments are loaded one product before they are multiplied.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#if ELEMENT_IS_BF16
#extension GL_EXT_bfloat16 : require
#endif
#include "dtype.glsl"

#if ELEMENT_IS_BF16
#define ELEMENT bfloat16_t
#elif ELEMENT_IS_S8
#define ELEMENT int8_t
#elif ELEMENT_IS_U8
#define ELEMENT uint8_t
#else
#define ELEMENT float16_t
#endif
// Bits of an element, elements of a word, and of what moves at a time: a uvec4.
#if ELEMENT_IS_S8 || ELEMENT_IS_U8
#define BITS 8
#else
#define BITS 16
#endif
#define OF_WORD (32 / BITS)
#define PER (4 * OF_WORD)
#define MASK ((1u << BITS) - 1u)

// What sums are in C, the type by which their bits leave shared memory.
#if ELEMENT_IS_S8
#define VALUE4_OF(words) ivec4(words)
#define SUM4 ivec4
#elif ELEMENT_IS_U8
#define VALUE4_OF(words) words
#define SUM4 uvec4
#else
#define VALUE4_OF(words) uintBitsToFloat(words)
#define SUM4 vec4
#endif

#define ACROSS (BN / WN)
#define SUBGROUPS (ACROSS * (BM / WM))
#define THREADS (LANES * SUBGROUPS)
layout(local_size_x = THREADS) in;

layout(push_constant) uniform Product {
    uint m, n, k;
    uint batches;
    uint a_offset, a_batch, a_free, a_contract;
    uint b_offset, b_batch, b_free, b_contract;
    uint chunk;              // elements of one split along k, a multiple of BK
    uint blocks_m, blocks_n; // workgroups of a slab, which is one batch of one split
    uint jobs;               // workgroups with work to do
#ifdef EPILOGUE_WORDS
    uint epilogue[EPILOGUE_WORDS];
#endif
};
#ifdef EPILOGUE
#include "epilogue.glsl"
#define VALUE4 R_VALUE4
#define FINISH(i, x) finished(own, i, x, slab, row, column + i)
#define FINISH4(v) VALUE4(FINISH(0, v.x), FINISH(1, v.y), FINISH(2, v.z), FINISH(3, v.w))
#else
#define VALUE4 SUM4
#define Neighbours uint
#define neighbours_at(slab, row, column) 0u
#define FINISH(i, x) (x)
#define FINISH4(v) (v)
#endif
#define STORED(x) T_STORE(T_VALUE(x))

#if C_WIDE
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { C_PACK c[]; };
#else
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { T_STORAGE c[]; };
#endif

// Sums of FM rows of a subgroup in shared memory, and the room that the steps along k take, in uvec4. Rows are a uvec4 longer
// than what they hold, so that neighbours begin in different banks.
#define OUT_ROW (WN / 4 + 1)
#define OUT (FM * OUT_ROW)
#define A_ROW ((A_ALONG_K == 1 ? BK : BM) / PER + 1)
#define B_ROW ((B_ALONG_K == 1 ? BK : BN) / PER + 1)
#define A_TILE ((A_ALONG_K == 1 ? BM : BK) * A_ROW)
#define B_TILE ((B_ALONG_K == 1 ? BN : BK) * B_ROW)
#define B_FROM (2 * A_TILE)
#define OF_TILES (2 * (A_TILE + B_TILE))
#define POOL (OF_TILES > SUBGROUPS * OUT ? OF_TILES : SUBGROUPS * OUT)
shared uvec4 pool[POOL];

uint k_end;

#define SIDE(name) A_##name
#define side(name) a_##name
#define BINDING 0
#define EDGE BM
#define EXTENT m
#define BASE 0
#define ALONG_K A_ALONG_K
#define WIDE A_WIDE
#define RAW A_RAW
#include "matrix_a.glsl"
#undef SIDE
#undef side
#undef BINDING
#undef EDGE
#undef EXTENT
#undef BASE
#undef ALONG_K
#undef WIDE
#undef RAW
#define SIDE(name) B_##name
#define side(name) b_##name
#define BINDING 1
#define EDGE BN
#define EXTENT n
#define BASE B_FROM
#define ALONG_K B_ALONG_K
#define WIDE B_WIDE
#define RAW B_RAW
#include "matrix_b.glsl"

#define ROWS (WM / FM)
#define COLUMNS (WN / FN)
#define STEPS (BK / FK)
#define SUMS coopmat<SUM, gl_ScopeSubgroup, FM, FN, gl_MatrixUseAccumulator>
SUMS sums[ROWS * COLUMNS];
coopmat<ELEMENT, gl_ScopeSubgroup, FM, FK, gl_MatrixUseA> left[2][ROWS];
coopmat<ELEMENT, gl_ScopeSubgroup, FK, FN, gl_MatrixUseB> right[2][COLUMNS];

void fetch(uvec2 start, uvec2 corner, uint k_at) {
    a_fetch(start.x, corner.x, k_at);
    b_fetch(start.y, corner.y, k_at);
}

void keep(uint turn) {
    a_keep(turn);
    b_keep(turn);
}

// The fragments of product `p` of a step, of the subgroup at `own` in the block.
void load(uint set, uint turn, uint p, uvec2 own) {
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
#if A_ALONG_K
        coopMatLoad(left[set][i], pool, turn * A_TILE + (own.x + i * FM) * A_ROW + p * FK / PER, A_ROW,
                    gl_CooperativeMatrixLayoutRowMajor);
#else
        coopMatLoad(left[set][i], pool, turn * A_TILE + p * FK * A_ROW + (own.x + i * FM) / PER, A_ROW,
                    gl_CooperativeMatrixLayoutColumnMajor);
#endif
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
#if B_ALONG_K
        coopMatLoad(right[set][j], pool, B_FROM + turn * B_TILE + (own.y + j * FN) * B_ROW + p * FK / PER, B_ROW,
                    gl_CooperativeMatrixLayoutColumnMajor);
#else
        coopMatLoad(right[set][j], pool, B_FROM + turn * B_TILE + p * FK * B_ROW + (own.y + j * FN) / PER, B_ROW,
                    gl_CooperativeMatrixLayoutRowMajor);
#endif
    }
}

void multiply(uint set) {
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
        [[unroll]] for (uint i = 0; i < ROWS; i++)
            sums[i * COLUMNS + j] = coopMatMulAdd(left[set][i], right[set][j], sums[i * COLUMNS + j]);
}

// Four results of a row from `column` on; those beyond the last column are dropped.
void store(uint slab, uint row, uint column, SUM4 sum) {
    if (row >= m || column >= n) return;
    uint at = (slab * m + row) * n + column;
    Neighbours own = neighbours_at(slab, row, column);
#if C_WIDE
    VALUE4 x = FINISH4(sum);
    c[at / 4] = C_PACK(STORED(x.x), STORED(x.y), STORED(x.z), STORED(x.w));
#else
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (column + i < n) c[at + i] = STORED(FINISH(i, sum[i]));
#endif
}

// Workgroups walk in bands of BAND rows of blocks: those that run together share rows and columns in caches.
uvec2 block_of(uint job) {
    uint first = job / (BAND * blocks_n) * BAND;
    uint rows = min(blocks_m - first, BAND);
    uint rest = job - first * blocks_n;
    return uvec2(first + rest % rows, rest / rows);
}

void main() {
    uint job = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (job >= jobs) return;
    uint slab = job / (blocks_m * blocks_n), batch = slab % batches;
    uvec2 corner = block_of(job % (blocks_m * blocks_n)) * uvec2(BM, BN);
    uvec2 own = uvec2(gl_SubgroupID / ACROSS * WM, gl_SubgroupID % ACROSS * WN);
    uvec2 start = uvec2(a_offset + batch * a_batch, b_offset + batch * b_batch);
    uint at = slab / batches * chunk;
    k_end = min(k, at + chunk);
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) sums[i] = SUMS(0);

    fetch(start, corner, at);
    keep(0);
    fetch(start, corner, at + BK);
    // The first step is there before anybody reads it.
    barrier();
    load(0, 0, 0, own);
    uint turn = 0;
    for (; at < k_end; at += BK) {
        [[unroll]] for (uint p = 0; p < STEPS; p++) {
            uint set = p & 1;
            if (p == STEPS - 1) {
                turn ^= 1;
                keep(turn);
                // What was kept is there, and nobody reads the other half any more.
                barrier();
                fetch(start, corner, at + 2 * BK);
                load(set ^ 1, turn, 0, own);
            } else {
                load(set ^ 1, turn, p + 1, own);
            }
            multiply(set);
        }
    }

    // Nobody reads a step any more: sums take its place, each subgroup in a part of its own.
    barrier();
    uint from = gl_SubgroupID * OUT;
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        [[unroll]] for (uint j = 0; j < COLUMNS; j++)
            coopMatStore(sums[i * COLUMNS + j], pool, from + j * FN / 4, OUT_ROW, gl_CooperativeMatrixLayoutRowMajor);
        // All lanes have stored what any of them reads, and below have read it before the next rows take its place.
        subgroupBarrier();
        for (uint four = gl_SubgroupInvocationID; four < FM * WN / 4; four += LANES) {
            uvec2 place = uvec2(four / (WN / 4), four % (WN / 4));
            SUM4 sum = VALUE4_OF(pool[from + place.x * OUT_ROW + place.y]);
            store(slab, corner.x + own.x + i * FM + place.x, corner.y + own.y + 4 * place.y, sum);
        }
        subgroupBarrier();
    }
}
