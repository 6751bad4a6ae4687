#version 450
#pragma use_vulkan_memory_model
// As cores.comp, with A or B or both where they lie: what packing costs is saved, and loads are of shorter runs. What lies is in
// units of 8 elements, which the loaded axis has a multiple of; 32 of k are a pair of steps.
//   Along k: lane t of a row or column has k 8t to 8t + 7, of which a step takes four after the other
//   Across k, of the same k: lane g has columns 8g to 8g + 7 of B, and as many rows of A as it has in all tiles
#include "cores.glsl"

// Where the last loads end beyond k, the last elements are loaded once more and dropped: loads with conditions would wait for
// each other.
#if TAIL
#define UP_TO(last, at) min(last, at)
#define KEPT(x, at) ((x) & (0u - uint((at) < k)))
#else
#define UP_TO(last, at) (at)
#define KEPT(x, at) (x)
#endif
// Along k in units of 8 elements, across k elements.
#define ALONG(x, from, at) KEPT(x[(from) + UP_TO(k / 8 - 1, at)], (at) * 8)
#define ACROSS(x, from, step, at) KEPT(x[(from) + UP_TO(k - 1, at) * (step)], at)

// Two elements of neighbouring rows in one word: the lower ones, the upper ones.
#define LOWER(x, y) (((x) & 0xffffu) | ((y) << 16))
#define UPPER(x, y) (((x) >> 16) | ((y) & 0xffff0000u))

#if TILES == 1
#define WORD(x, j) (x)
#else
#define WORD(x, j) x[j]
#endif

void main() {
    uint job = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (job >= jobs) return;
    uint slab = job / (blocks_m * blocks_n);
    uvec2 from = corner(job % (blocks_m * blocks_n));
#if PARTS == 1
    if (from.x >= m || from.y >= n) return;
#endif
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3;
    uint first = slab / batches * chunk, batch = slab % batches;
    uint pairs = (min(steps, first + chunk) - first) / 2;
#if PARTS > 1
    // Who gets none of them loads the last ones all the same.
    uint each = (pairs + PARTS - 1) / PARTS, before = min(SHARE * each, pairs);
    first = min(first + 2 * before, steps - 2);
    pairs = min(pairs - before, each);
#endif
    [[unroll]] for (uint i = 0; i < 4; i++) [[unroll]] for (uint j = 0; j < TILES; j++) sums[i][j] = SUMS(0);
    LEFT own[4];

    // Rows and columns beyond the last repeat it and are never stored; the last pair is loaded twice.
    uint unit = first * 2 + t; // of 8 along k
#if A_PACKED
    uint at_a = ((batch * tiles + from.x / 16) * steps + first) * 32 + lane;
    uvec4 rows[TILES];
    [[unroll]] for (uint j = 0; j < TILES; j++) rows[j] = a[at_a + j * steps * 32];
#elif A_ALONG_K
    uint at_a[TILES][2];
    uvec4 rows[TILES][2];
    [[unroll]] for (uint j = 0; j < TILES; j++) [[unroll]] for (uint i = 0; i < 2; i++) {
        uint row = min(from.x + 16 * j + 2 * g + i, m - 1);
        at_a[j][i] = offset_a + batch * batch_a + row * step_a;
        rows[j][i] = ALONG(a, at_a[j][i], unit);
    }
#else
    const uint LOADS = 4 / TILES, RUN = 2 * TILES; // of 8 elements, and elements of one
    uint at_a = (offset_a + batch * batch_a) * LOADS + min(from.x / RUN + g, m / RUN - 1);
    A_RUN rows[4];
    [[unroll]] for (uint i = 0; i < 4; i++) rows[i] = ACROSS(a, at_a, step_a * LOADS, unit * 8 + i);
#endif
#if B_PACKED
    uint at_b = ((batch * columns_b + min(from.y, n - 1) / 64) * steps + first) * 128 + lane;
    uvec4 columns[4];
    [[unroll]] for (uint i = 0; i < 4; i++) columns[i] = b[at_b + i * 32];
#elif B_ALONG_K
    uint at_b[8];
    uvec4 columns[8];
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uint column = min(from.y + 8 * g + i, n - 1);
        at_b[i] = offset_b + batch * batch_b + column * step_b;
        columns[i] = ALONG(b, at_b[i], unit);
    }
#else
    uint at_b = offset_b + batch * batch_b + min(from.y / 8 + g, n / 8 - 1);
    uvec4 four[4];
    [[unroll]] for (uint i = 0; i < 4; i++) four[i] = ACROSS(b, at_b, step_b, unit * 8 + i);
#endif
    for (uint pair = 0; pair < pairs; pair++) {
        uint next = min(pair + 1, pairs - 1);
        [[unroll]] for (uint turn = 0; turn < 2; turn++) {
            // Registers are loaded anew as soon as their last use is behind; across k with half of a pair.
            uint later = unit * 8 + (turn == 0 ? pair * 32 + 4 : next * 32);
#if B_PACKED
            [[unroll]] for (uint w = 0; w < 4; w++) own[w] = left(columns[w]);
            at_b += 128;
            [[unroll]] for (uint i = 0; i < 4; i++) columns[i] = b[at_b + i * 32];
#elif B_ALONG_K
            [[unroll]] for (uint w = 0; w < 4; w++) {
                uvec4 x = columns[2 * w], y = columns[2 * w + 1];
                own[w] = left(turn == 0 ? uvec4(x.x, y.x, x.y, y.y) : uvec4(x.z, y.z, x.w, y.w));
            }
            if (turn == 1) [[unroll]] for (uint i = 0; i < 8; i++)
                columns[i] = ALONG(b, at_b[i], unit + next * 4);
#else
            [[unroll]] for (uint w = 0; w < 4; w++) {
                own[w] = left(uvec4(LOWER(four[0][w], four[1][w]), UPPER(four[0][w], four[1][w]),
                                    LOWER(four[2][w], four[3][w]), UPPER(four[2][w], four[3][w])));
            }
            [[unroll]] for (uint i = 0; i < 4; i++) four[i] = ACROSS(b, at_b, step_b, later + i);
#endif
#if A_PACKED
            at_a += 32;
#elif !A_ALONG_K
            A_RUN now[4] = rows;
            [[unroll]] for (uint i = 0; i < 4; i++) rows[i] = ACROSS(a, at_a, step_a * LOADS, later + i);
#endif
            [[unroll]] for (uint j = 0; j < TILES; j++) {
#if A_PACKED
                RIGHT f = right(rows[j]);
#elif A_ACROSS
                uint p = WORD(now[0], j), q = WORD(now[1], j), r = WORD(now[2], j), s = WORD(now[3], j);
                RIGHT f = right(uvec4(LOWER(p, q), LOWER(r, s), UPPER(p, q), UPPER(r, s)));
#else
                RIGHT f = right(turn == 0 ? uvec4(rows[j][0].xy, rows[j][1].xy) : uvec4(rows[j][0].zw, rows[j][1].zw));
#endif
                [[unroll]] for (uint w = 0; w < 4; w++) sums[w][j] = coopMatMulAdd(own[w], f, sums[w][j]);
#if A_PACKED
                rows[j] = a[at_a + j * steps * 32];
#elif A_ALONG_K
                if (turn == 1) [[unroll]] for (uint i = 0; i < 2; i++)
                    rows[j][i] = ALONG(a, at_a[j][i], unit + next * 4);
#endif
            }
        }
    }
    store_all(slab, from);
}
