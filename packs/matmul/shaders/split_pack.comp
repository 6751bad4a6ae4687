#version 450
// Brings one operand of a product into the fragments that split.comp loads, each element as a sum of PARTS bf16, whatever the
// operand's layout. Where cores_pack.comp puts a fragment, as many uvec4 come for the first parts, then as many for the second
// ones, before the next 16 of k.
// What is beyond k is 0 on both sides, so that it adds nothing. Rows beyond the last repeat it and are never stored.
// Strides are modulo 2^32, so that of an index only the whole may be divided: halves of negative strides are none.
//
// Matrix units cut off what is less than 2^-25 of the largest of 16 products. Where products differ as much, a sum has fewer
// terms left than in f32; a row whose elements do, here and there among 16, has NaN.
#extension GL_KHR_shader_subgroup_ballot : require
#include "dtype.glsl"
#include "split.glsl"

layout(local_size_x = 256) in;

layout(push_constant) uniform Pack {
    uint rows; // of A, or columns of B
    uint k;
    uint offset, batch_stride, row_stride, k_stride;
    uint steps;  // of a fragment along k
    uint tiles;  // of 16 rows of A, or blocks of 64 columns of B
    uint blocks; // of 64 rows or columns
    uint jobs;   // workgroups with work to do
};

#if WIDE && ALONG_K
layout(set = 0, binding = 0, std430) readonly restrict buffer From { FOUR from[]; };
#elif WIDE
layout(set = 0, binding = 0, std430) readonly restrict buffer From { TWO from[]; };
#else
layout(set = 0, binding = 0, std430) readonly restrict buffer From { S_STORAGE from[]; };
#endif
layout(set = 0, binding = 1, std430) writeonly restrict buffer To { uvec4 to[]; };

const uint STEPS = 8; // subgroups of a workgroup, one for each step along k

// Elements k_at to k_at + 3 of two rows.
mat2x4 fetch(uint start, uint row, uint k_at) {
    mat2x4 x = mat2x4(0);
#if WIDE && ALONG_K
    [[unroll]] for (uint i = 0; i < 2; i++) {
        if (k_at < k) {
            FOUR four = from[(start + min(row + i, rows - 1) * row_stride) / 4];
            x[i] = vec4(S_LOAD(four.x), S_LOAD(four.y), S_LOAD(four.z), S_LOAD(four.w));
        }
    }
#elif WIDE
    uint at = start + min(row, rows - 2); // even, as are the number of rows and all strides
    [[unroll]] for (uint j = 0; j < 4; j++) {
        if (k_at + j < k) {
            TWO two = from[(at + j * k_stride) / 2];
            x[0][j] = S_LOAD(two.x);
            x[1][j] = S_LOAD(two.y);
        }
    }
#else
    [[unroll]] for (uint i = 0; i < 2; i++) {
        uint at = start + min(row + i, rows - 1) * row_stride;
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (k_at + j < k) x[i][j] = S_LOAD(from[at + j * k_stride]);
        }
    }
#endif
    return x;
}

// The words of a fragment: of A the two halves along k of a row and those of the next one, of B the first halves of both
// columns and then the second ones.
#if SIDE_A
#define ORDERED(words) words
const uint FRAGMENT = 32;
#else
#define ORDERED(words) words.xzyw
const uint FRAGMENT = 128;
#endif

const uint APART = 24 << 23;

// Whether the largest of four elements is 2^24 times the smallest one that is not 0, which is rare unless many differ so.
bool is_spread(vec4 x) {
    uvec4 size = floatBitsToUint(x) & 0x7fffffffu;
    uvec4 least = size - 1; // 0 is the largest
    uint low = min(min(least.x, least.y), min(least.z, least.w));
    uint high = max(max(size.x, size.y), max(size.z, size.w));
    return high > 0 && high - low > APART;
}

// Whether most of the four lanes that have a row of a fragment say so.
bool most_do(bool mine) {
    uint lanes = subgroupBallot(mine).x >> (gl_LocalInvocationIndex & 28) & 15;
    return bitCount(lanes) > 2;
}

void write(uint at, mat2x4 item, bvec2 inexact) {
    uvec4 words[PARTS];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uvec3 pair = parts(item[i / 2][i % 2 * 2]) | parts(item[i / 2][i % 2 * 2 + 1]) << 16;
        if (inexact[i / 2]) pair.x = 0x7fc07fc0;
        [[unroll]] for (uint p = 0; p < PARTS; p++) words[p][i] = pair[p];
    }
    [[unroll]] for (uint p = 0; p < PARTS; p++) to[at + p * FRAGMENT] = ORDERED(words[p]);
}

void main() {
    uint job = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (job >= jobs) return;
    uint lane = gl_LocalInvocationIndex & 31, g = lane >> 2, t = lane & 3;
    uint step_groups = (steps + STEPS - 1) / STEPS;
    uint step = job % step_groups * STEPS + (gl_LocalInvocationIndex >> 5);
    uint block = job / step_groups % blocks;
    uint batch = job / step_groups / blocks;
    if (step >= steps) return;
    uint k_at = (step * 4 + t) * 4;
    uint start = offset + batch * batch_stride + k_at * k_stride;
    mat2x4 items[4];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        items[i] = fetch(start, block * 64 + (SIDE_A == 1 ? 16 * i + 2 * g : 8 * g + 2 * i), k_at);
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
#if MARK_SPREAD
        bvec2 inexact = bvec2(most_do(is_spread(items[i][0])), most_do(is_spread(items[i][1])));
#else
        bvec2 inexact = bvec2(false);
#endif
#if SIDE_A
        uint tile = block * 4 + i;
        if (tile < tiles) write(((batch * tiles + tile) * steps + step) * (FRAGMENT * PARTS) + lane, items[i], inexact);
#else
        write(((batch * tiles + block) * steps + step) * (FRAGMENT * PARTS) + i * 32 + lane, items[i], inexact);
#endif
    }
}
