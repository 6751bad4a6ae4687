#version 450
#pragma use_vulkan_memory_model
// C = A B on matrix units, without shared memory and without a barrier: every subgroup loads its fragments straight from
// packed operands (cores_pack.comp), 512 contiguous bytes a load. A subgroup owns WARP_M x 64 of C, a workgroup
// WARPS_M x WARPS_N of these.
#include "cores.glsl"

void main() {
    uint job = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (job >= jobs) return;
    uint slab = job / (blocks_m * blocks_n);
    uvec2 from = corner(job % (blocks_m * blocks_n));
    if (from.x >= m || from.y >= n) return;
    uint lane = gl_SubgroupInvocationID;
    uint first = slab / batches * chunk, batch = slab % batches;
    uint pairs = (min(steps, first + chunk) - first) / 2;
    uint at_a = ((batch * tiles + from.x / 16) * steps + first) * 32 + lane;
    uint at_b = ((batch * columns_b + from.y / 64) * steps + first) * 128 + lane;
    [[unroll]] for (uint i = 0; i < 4; i++) [[unroll]] for (uint j = 0; j < TILES; j++) sums[i][j] = SUMS(0);
    uvec4 rows[TILES], next[2][4];
    LEFT own[4];
    [[unroll]] for (uint i = 0; i < 4; i++) next[0][i] = b[at_b + i * 32];
    [[unroll]] for (uint j = 0; j < TILES; j++) rows[j] = a[at_a + j * steps * 32];
    // Registers of A are loaded anew as soon as their last use is behind; B has two sets. The last step loads what nobody
    // uses and lies in the packed operands' buffers all the same.
    for (uint pair = 0; pair < pairs; pair++) {
        [[unroll]] for (uint turn = 0; turn < 2; turn++) {
            at_a += 32;
            at_b += 128;
            [[unroll]] for (uint i = 0; i < 4; i++) next[turn ^ 1][i] = b[at_b + i * 32];
            [[unroll]] for (uint i = 0; i < 4; i++) own[i] = left(next[turn][i]);
            [[unroll]] for (uint j = 0; j < TILES; j++) {
                RIGHT f = right(rows[j]);
                [[unroll]] for (uint w = 0; w < 4; w++) sums[w][j] = coopMatMulAdd(own[w], f, sums[w][j]);
                rows[j] = a[at_a + j * steps * 32];
            }
        }
    }
    store_all(slab, from);
}
