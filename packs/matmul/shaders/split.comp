#version 450
#pragma use_vulkan_memory_model
// C = A B of f32 on matrix units for bf16: each element is a sum of bf16 (split_pack.comp), PARTS_A and PARTS_B of them. Of the
// products of parts p and q those with p + q >= ORDERS are left out: with 3 at most 2^-24 of the product of the elements, to
// either side.
//
// Matrix units cut sums off. So they add up the products of 16 elements each time, the smallest first, and the ALU, which rounds,
// the sums of 16. Where ROUNDS is 0, the units add up everything.
//
// What may not be as exact as in f32 is seen by its result: it is no number, very large or very small. A subgroup that has one
// such result computes all that it owns once more, from the operands themselves.
#extension GL_KHR_shader_subgroup_arithmetic : require
#define ORIGINALS
#include "cores.glsl"
#include "split.glsl"
#include "plainly.glsl"

#define MULTIPLY(p, q) sum = coopMatMulAdd(left(columns[q][w]), own[p], sum);

void main() {
    uint job = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (job >= jobs) return;
    uint slab = job / (blocks_m * blocks_n);
    uvec2 from = corner(job % (blocks_m * blocks_n));
    if (from.x >= m || from.y >= n) return;
    uint lane = gl_SubgroupInvocationID;
    uint first = slab / batches * chunk, batch = slab % batches;
    uint count = min(steps, first + chunk) - first;
    uint at_a = ((batch * tiles + from.x / 16) * steps + first) * (32 * PARTS_A) + lane;
    uint at_b = ((batch * columns_b + from.y / 64) * steps + first) * (128 * PARTS_B) + lane;
    [[unroll]] for (uint i = 0; i < 4; i++) [[unroll]] for (uint j = 0; j < TILES; j++) sums[i][j] = SUMS(0);
    uvec4 rows[2][PARTS_A], columns[PARTS_B][4];
    [[unroll]] for (uint q = 0; q < PARTS_B; q++) [[unroll]] for (uint i = 0; i < 4; i++) columns[q][i] = b[at_b + q * 128 + i * 32];
    [[unroll]] for (uint p = 0; p < PARTS_A; p++) rows[0][p] = a[at_a + p * 32];
    // A tile of rows is loaded while the one before is multiplied, columns as soon as their last use is behind. The last step
    // loads what nobody uses and lies in the packed operands' buffers all the same. TILES is even.
    for (uint s = 0; s < count; s++) {
        at_b += 128 * PARTS_B;
        [[unroll]] for (uint j = 0; j < TILES; j++) {
            uint next = j == TILES - 1 ? at_a + 32 * PARTS_A : at_a + (j + 1) * steps * (32 * PARTS_A);
            [[unroll]] for (uint p = 0; p < PARTS_A; p++) rows[(j + 1) & 1][p] = a[next + p * 32];
            RIGHT own[PARTS_A];
            [[unroll]] for (uint p = 0; p < PARTS_A; p++) own[p] = right(rows[j & 1][p]);
            [[unroll]] for (uint w = 0; w < 4; w++) {
#if ROUNDS
                SUMS sum = SUMS(0);
#else
                SUMS sum = sums[w][j];
#endif
#if PARTS_A > 2
                MULTIPLY(2, 0)
#endif
#if PARTS_B > 2
                MULTIPLY(0, 2)
#endif
#if PARTS_A > 1 && PARTS_B > 1 && ORDERS > 2
                MULTIPLY(1, 1)
#endif
#if PARTS_A > 1
                MULTIPLY(1, 0)
#endif
#if PARTS_B > 1
                MULTIPLY(0, 1)
#endif
                MULTIPLY(0, 0)
                if (j == TILES - 1) {
                    [[unroll]] for (uint q = 0; q < PARTS_B; q++) columns[q][w] = b[at_b + q * 128 + w * 32];
                }
                // Whole matrices: NVIDIA's driver copies one for each element that is written.
#if ROUNDS
                sums[w][j] += sum;
#else
                sums[w][j] = sum;
#endif
            }
        }
        at_a += 32 * PARTS_A;
    }
    // Without branches: they keep the driver's compiler from unrolling, all sums move to memory, and it takes twice as long.
    uint worst = 0;
    [[unroll]] for (uint j = 0; j < TILES; j++) {
        // Tiles beyond the last row are whatever was in memory.
        uint mask = from.x + j * 16 < m ? 0xffffffffu : 0u;
        [[unroll]] for (uint w = 0; w < 4; w++) {
            [[unroll]] for (uint e = 0; e < 8; e++) worst = max(worst, above(sums[w][j][e], POWER(-100)) & mask);
        }
    }
    store_all(slab, from);
    if (subgroupMax(worst) >= POWER(120) - POWER(-100)) store_plainly(slab, from, first * 16, min(k, (first + count) * 16));
}
