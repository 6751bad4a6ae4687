#version 450
// Brings one operand of a product, of any layout, into the fragments that cores.comp loads: a uvec4 holds for one lane two
// rows of A (or columns of B) and four places along k, 32 of them are 16 x 16 elements.
//   A: uvec4 lane of tile i: rows 16i + 2g and 16i + 2g + 1 (g = lane / 4, t = lane % 4); of 32 of k a first step has
//      8t to 8t + 3 and a second one 8t + 4 to 8t + 7, as operands have that are read where they lie; then the next tile
//   B: uvec4 32w + lane of block j: columns 64j + 8g + 2w and the next one; 16 of k after each other, then the next block
// Of bytes a step has k 8t to 8t + 7, 32 of them in a fragment.
// Strides are modulo 2^32, so that of an index only the whole may be divided: halves of negative strides are none.
// What lies beyond k is 0 on both sides, so that it adds nothing. Rows beyond the last repeat it and are never stored.
#include "dtype.glsl"

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

// Elements k_at to k_at + PLACES - 1 of two rows. RAW ones are words that only move.
#if BYTES
#define PLACES 8
#define ITEM uvec4
ITEM fetch(uint start, uint row, uint k_at) {
    ITEM words = uvec4(0);
#if WIDE && ALONG_K
    if (k_at < k) {
        words.xy = from[(start + min(row, rows - 1) * row_stride) / 8];
        words.zw = from[(start + min(row + 1, rows - 1) * row_stride) / 8];
    }
#elif WIDE
    uint at = start + min(row, rows - 2); // even, as are the number of rows and all strides
    [[unroll]] for (uint j = 0; j < 8; j++) {
        uint two = 0;
        if (k_at + j < k) two = uint(from[(at + j * k_stride) / 2]);
        words[j / 4] |= (two & 0xffu) << (j % 4 * 8);
        words[2 + j / 4] |= (two >> 8) << (j % 4 * 8);
    }
#else
    [[unroll]] for (uint j = 0; j < 16; j++) {
        uint at = start + min(row + j / 8, rows - 1) * row_stride + j % 8 * k_stride;
        if (k_at + j % 8 < k) words[j / 4] |= (uint(from[at]) & 0xffu) << (j % 4 * 8);
    }
#endif
    return words;
}
#elif RAW
#define PLACES 4
#define ITEM uvec4
ITEM fetch(uint start, uint row, uint k_at) {
    ITEM words = uvec4(0);
#if WIDE && ALONG_K
    if (k_at < k) {
        words.xy = from[(start + min(row, rows - 1) * row_stride) / 4];
        words.zw = from[(start + min(row + 1, rows - 1) * row_stride) / 4];
    }
#elif WIDE
    uint at = start + min(row, rows - 2); // even, as are the number of rows and all strides
    uint x[4];
    [[unroll]] for (uint j = 0; j < 4; j++) {
        x[j] = 0;
        if (k_at + j < k) x[j] = from[(at + j * k_stride) / 2];
    }
    words = uvec4((x[0] & 0xffffu) | (x[1] << 16), (x[2] & 0xffffu) | (x[3] << 16),
                  (x[0] >> 16) | (x[1] & 0xffff0000u), (x[2] >> 16) | (x[3] & 0xffff0000u));
#else
    [[unroll]] for (uint j = 0; j < 8; j++) {
        uint at = start + min(row + j / 4, rows - 1) * row_stride + j % 4 * k_stride;
        if (k_at + j % 4 < k) words[j / 2] |= uint(from[at]) << (j % 2 * 16);
    }
#endif
    return words;
}
#else
#define PLACES 4
#define ITEM mat2x4
ITEM fetch(uint start, uint row, uint k_at) {
    ITEM x = mat2x4(0);
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
#endif

// The words of a fragment: of A the two halves along k of a row and those of the next one, of B the first halves of both
// columns and then the second ones.
#if SIDE_A
#define ORDERED(words) words
#else
#define ORDERED(words) words.xzyw
#endif

void write(uint at, ITEM item) {
#if RAW
    to[at] = ORDERED(item);
#else
    uvec4 words;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        float x = item[i / 2][i % 2 * 2], y = item[i / 2][i % 2 * 2 + 1];
        words[i] = uint(D_STORE(x)) | (uint(D_STORE(y)) << 16);
    }
    to[at] = ORDERED(words);
#endif
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
#if BYTES
    uint k_at = (step * 4 + t) * PLACES;
#else
    uint k_at = (step / 2 * 8 + 2 * t + step % 2) * PLACES;
#endif
    uint start = offset + batch * batch_stride + k_at * k_stride;
    ITEM items[4];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        items[i] = fetch(start, block * 64 + (SIDE_A == 1 ? 16 * i + 2 * g : 8 * g + 2 * i), k_at);
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
#if SIDE_A
        uint tile = block * 4 + i;
        if (tile < tiles) write(((batch * tiles + tile) * steps + step) * 32 + lane, items[i]);
#else
        write(((batch * tiles + block) * steps + step) * 128 + i * 32 + lane, items[i]);
#endif
    }
}
