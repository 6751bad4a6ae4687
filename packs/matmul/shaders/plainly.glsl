// What a subgroup owns of C by the ALU alone, from the operands that were packed.
#define SIDE(name) A_##name
#define side(name) a_##name
#define BINDING 3
#define EXTENT m
#define ALONG_K A_ALONG_K
#define WIDE A_WIDE
#include "plain_a.glsl"
#undef SIDE
#undef side
#undef BINDING
#undef EXTENT
#undef ALONG_K
#undef WIDE
#define SIDE(name) B_##name
#define side(name) b_##name
#define BINDING 4
#define EXTENT n
#define ALONG_K B_ALONG_K
#define WIDE B_WIDE
#include "plain_b.glsl"

// Stores the sums over k_at to k_end - 1. A lane has four rows of each tile, and eight columns. Four products are added up before
// they are added to a sum, which is rounded less often so.
void store_plainly(uint slab, uvec2 from, uint k_at, uint k_end) {
    uint g = gl_SubgroupInvocationID >> 2, t = gl_SubgroupInvocationID & 3;
    uint batch = slab % batches, column = from.y + 8 * g;
    uvec2 start = uvec2(a_offset + batch * a_batch, b_offset + batch * b_batch);
    [[dont_unroll]] for (uint j = 0; j < TILES; j++) {
        uint row = from.x + 16 * j + 4 * t;
        vec4 x[4], y[4];
        [[unroll]] for (uint r = 0; r < 4; r++) x[r] = y[r] = vec4(0);
        [[dont_unroll]] for (uint at = k_at; at < k_end; at += 4) {
            mat4 rows = a_block(start.x, row, at, k_end);
            mat4 left = transpose(b_block(start.y, column, at, k_end)), right = transpose(b_block(start.y, column + 4, at, k_end));
            [[unroll]] for (uint r = 0; r < 4; r++) {
                vec4 p = rows[r][0] * left[0], q = rows[r][0] * right[0];
                [[unroll]] for (uint i = 1; i < 4; i++) {
                    p = fma(vec4(rows[r][i]), left[i], p);
                    q = fma(vec4(rows[r][i]), right[i], q);
                }
                x[r] += p;
                y[r] += q;
            }
        }
        [[unroll]] for (uint r = 0; r < 4; r++) {
#if C_WIDE
            if (row + r < m) store(eight_at(slab, row + r, column), slab, row + r, column, x[r], y[r]);
#else
            stage(4 * t + r, 8 * g, x[r], y[r]);
#endif
        }
#if !C_WIDE
        store_staged(slab, from, j);
#endif
    }
}
