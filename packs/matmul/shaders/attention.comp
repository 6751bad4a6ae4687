#version 450
#pragma use_vulkan_memory_model
// softmax(f(Q K^T)) V on matrix units, without a score in memory: a subgroup owns 16 ROW_TILES rows of Q and all columns of V, and
// goes through its part of the keys, 16 KEY_TILES a turn. What it has so far is scaled down when a greater score comes.
//
// A lane loads 16 bytes of a row, 8 elements; offsets and steps are in units of these. Which column of a fragment is which key or
// column of V is free, so that fragments of each product are registers that loads or the other product left there:
//   scores    columns 2t, 2t + 1, 2t + 8, 2t + 9 of a tile are keys 4t to 4t + 3; along the depth as in cores_direct.comp
//   results   of tile w, columns c and c + 8 are columns 8c + 2w and 8c + 2w + 1 of V, of 64
#extension GL_KHR_shader_subgroup_shuffle : require
#include "fragments.glsl"

layout(local_size_x = 32 * SIDES * PARTS) in;

// Where something is along what are one or two axes of a tensor.
struct Along { uint outer, extent, inner; };

layout(push_constant) uniform Attention {
    uint rows, keys;
    uint depth, width; // of rows of Q and K, and of V, in units of 8 elements
    uint blocks;       // workgroups of a batch
    uint jobs;         // workgroups with work to do
    uint chunk;        // keys of a part, a multiple of a turn's
    uint offset_q;
    Along batch_q, row_q;
    uint offset_k;
    Along batch_k;
    uint key_k;
    uint offset_v;
    Along batch_v;
    uint key_v;
    Along batch_o, row_o;
#ifdef EPILOGUE_WORDS
    uint epilogue[EPILOGUE_WORDS];
#endif
};

#ifdef EPILOGUE
#include "epilogue.glsl"
#else
#define E_RUN 1
#define Neighbours uint
#endif

layout(set = 0, binding = 0, std430) readonly restrict buffer Q { uvec4 q[]; };
layout(set = 0, binding = 1, std430) readonly restrict buffer K { uvec4 k[]; };
layout(set = 0, binding = 2, std430) readonly restrict buffer V { uvec4 v[]; };
layout(set = 0, binding = 3, std430) writeonly restrict buffer O { uvec4 o[]; };

const float LOG2_E = 1.44269504;
const float NOTHING = uintBitsToFloat(0xff800000u); // -inf
const float LEAST = uintBitsToFloat(0xff7fffffu);
const uint TURN = 16 * KEY_TILES;

// By tile of rows. Of the scores, rows g (x) and g + 8 (y): the greatest so far, and the lane's part of the sum of all weights.
SUMS results[ROW_TILES][V_BLOCKS][4];
vec2 greatest[ROW_TILES], total[ROW_TILES];

uint at(Along along, uint place) {
    return place / along.extent * along.outer + place % along.extent * along.inner;
}

// e to the power of x less the greatest one: 0 of nothing, NaN where the greatest is infinite.
#define WEIGHT(x, top) exp2(((x) - ((top) < LEAST ? 0.0 : (top))) * LOG2_E)
float weight(float x, float top) { return WEIGHT(x, top); }
vec4 weight(vec4 x, float top) { return WEIGHT(x, top); }

// Two results, or two weights, as they are multiplied.
#if ELEMENT_IS_BF16
// To nearest; of ties the greater one, which saves an instruction.
uint weights(float x, float y) {
    return (floatBitsToUint(x) + 0x8000u) >> 16 | ((floatBitsToUint(y) + 0x8000u) & 0xffff0000u);
}
uint both(float x, float y) {
    return uint(nxv_store_bf16(x)) | uint(nxv_store_bf16(y)) << 16;
}
#else
uint both(float x, float y) {
    return packFloat2x16(f16vec2(x, y));
}
#define weights both
#endif

// Weights of keys 4t to 4t + 3, of rows g and g + 8.
LEFT left_of(vec4 x, vec4 y) {
    return left(uvec4(weights(x.x, x.y), weights(y.x, y.y), weights(x.z, x.w), weights(y.z, y.w)));
}

float greatest_of(vec4 x) {
    return max(max(x.x, x.y), max(x.z, x.w));
}

// Of 16 results of row g (half = 0) or g + 8 in a block, columns 16t on, four from 8 side + 2w on. A macro: an index that the driver's
// compiler does not know takes all results to memory.
#define FOUR(i, e, half_, side, w) \
    vec4(results[i][e][w][4 * half_ + side], results[i][e][w][4 * half_ + side + 2], \
         results[i][e][w + 1][4 * half_ + side], results[i][e][w + 1][4 * half_ + side + 2])

uvec4 words(vec4 x, vec4 y) {
    return uvec4(both(x.x, x.y), both(x.z, x.w), both(y.x, y.y), both(y.z, y.w));
}

#if PARTS > 1
const uint PITCH = 17;
shared vec4 staged[SIDES * PARTS * 16 * PITCH];
shared vec2 tops[SIDES * PARTS * ROW_TILES * 16];

// A block of all parts, added up, goes to memory from row `from` on and from the place that `base` is for batch and block.
void store_sums(uint part, uint side, uint from, uint base, uint most) {
    barrier(); // the tiles are complete
    for (uint i = part * 32 + gl_SubgroupInvocationID; i < 16 * 8; i += 32 * PARTS) {
        uint row = i / 8, eight = i % 8;
        vec4 x = vec4(0.0), y = vec4(0.0);
        [[unroll]] for (uint p = 0; p < PARTS; p++) {
            uint place = ((p * SIDES + side) * 16 + row) * PITCH + 2 * eight;
            x += staged[place];
            y += staged[place + 1];
        }
        row += from;
        if (row < rows && eight < most) o[base + at(row_o, row) + eight] = words(x, y);
    }
    barrier(); // nobody still reads them
}

#define STORE(i, e) \
    [[unroll]] for (uint h = 0; h < 2; h++) [[unroll]] for (uint s = 0; s < 2; s++) { \
        uint place = (gl_SubgroupID * 16 + g + 8 * h) * PITCH + 4 * t + 2 * s; \
        staged[place] = FOUR(i, e, h, s, 0) * scale[h]; \
        staged[place + 1] = FOUR(i, e, h, s, 2) * scale[h]; \
    } \
    store_sums(part, side, from + 16 * i, base_o + 8 * e, width - min(8 * e, width));
#endif

void main() {
    uint job = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (job >= jobs) return;
    uint batch = job / blocks;
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3;
    uint side = gl_SubgroupID % SIDES, part = gl_SubgroupID / SIDES;
    uint from = (job % blocks * SIDES + side) * 16 * ROW_TILES;
    uint first = min(part * chunk, keys), last = min(first + chunk, keys);

    LEFT queries[ROW_TILES][2 * D_PAIRS];
    uint base_q = offset_q + at(batch_q, batch);
    [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
        uint x = base_q + at(row_q, min(from + 16 * i + g, rows - 1));
        uint y = base_q + at(row_q, min(from + 16 * i + g + 8, rows - 1));
        [[unroll]] for (uint pair = 0; pair < D_PAIRS; pair++) {
            uvec4 a = uvec4(0), b = uvec4(0);
            if (WHOLE_DEPTH == 1 || 4 * pair + t < depth) {
                a = q[x + 4 * pair + t];
                b = q[y + 4 * pair + t];
            }
            queries[i][2 * pair] = left(uvec4(a.x, b.x, a.y, b.y));
            queries[i][2 * pair + 1] = left(uvec4(a.z, b.z, a.w, b.w));
        }
        greatest[i] = vec2(NOTHING);
        total[i] = vec2(0.0);
        [[unroll]] for (uint e = 0; e < V_BLOCKS; e++)
            [[unroll]] for (uint w = 0; w < 4; w++) results[i][e][w] = SUMS(0);
    }

    uint base_k = offset_k + at(batch_k, batch) + t;
    uint base_v = offset_v + at(batch_v, batch) + g;
    // The key of columns g of a tile; that of columns g + 8 is the second after it.
    uint own = g / 2 * 4 + g % 2;
    uvec4 keys_of[KEY_TILES][D_PAIRS][2];
#define LOAD_KEYS(from_key) \
    [[unroll]] for (uint j = 0; j < KEY_TILES; j++) [[unroll]] for (uint h = 0; h < 2; h++) { \
        uint place = base_k + min((from_key) + 16 * j + own + 2 * h, keys - 1) * key_k; \
        [[unroll]] for (uint pair = 0; pair < D_PAIRS; pair++) { \
            keys_of[j][pair][h] = uvec4(0); \
            if (WHOLE_DEPTH == 1 || 4 * pair + t < depth) keys_of[j][pair][h] = k[place + 4 * pair]; \
        } \
    }
    LOAD_KEYS(first)
    for (uint key = first; key < last; key += TURN) {
        SUMS scores[ROW_TILES][KEY_TILES];
        [[unroll]] for (uint i = 0; i < ROW_TILES; i++)
            [[unroll]] for (uint j = 0; j < KEY_TILES; j++) scores[i][j] = SUMS(0);
#ifdef EPILOGUE
        Neighbours ahead[ROW_TILES][KEY_TILES][2];
        [[unroll]] for (uint i = 0; i < ROW_TILES; i++) [[unroll]] for (uint j = 0; j < KEY_TILES; j++) {
            [[unroll]] for (uint h = 0; h < 2; h++) {
                uint row = min(from + 16 * i + g + 8 * h, rows - 1);
                ahead[i][j][h] = neighbours_at(batch, row, min(key + 16 * j + 4 * t, keys - E_RUN));
            }
        }
#endif
        // What a weight of 0 is multiplied with must be a number.
        uvec4 values[KEY_TILES][V_BLOCKS][4];
        [[unroll]] for (uint j = 0; j < KEY_TILES; j++) {
            [[unroll]] for (uint i = 0; i < 4; i++) [[unroll]] for (uint e = 0; e < V_BLOCKS; e++) {
                uint place = key + 16 * j + 4 * t + i;
                values[j][e][i] = uvec4(0);
                if (place < last && (WHOLE_WIDTH == 1 || 8 * e + g < width))
                    values[j][e][i] = v[base_v + place * key_v + 8 * e];
            }
        }
        [[unroll]] for (uint j = 0; j < KEY_TILES; j++) {
            [[unroll]] for (uint pair = 0; pair < D_PAIRS; pair++) [[unroll]] for (uint turn = 0; turn < 2; turn++) {
                uvec4 x = keys_of[j][pair][0], y = keys_of[j][pair][1];
                RIGHT f = right(turn == 0 ? uvec4(x.xy, y.xy) : uvec4(x.zw, y.zw));
                [[unroll]] for (uint i = 0; i < ROW_TILES; i++)
                    scores[i][j] = coopMatMulAdd(queries[i][2 * pair + turn], f, scores[i][j]);
            }
        }
        LOAD_KEYS(key + TURN)

        LEFT shares[ROW_TILES][KEY_TILES];
        [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
            vec4 x[KEY_TILES], y[KEY_TILES];
            vec2 top = greatest[i];
            [[unroll]] for (uint j = 0; j < KEY_TILES; j++) {
                uint place = key + 16 * j + 4 * t;
                x[j] = vec4(scores[i][j][0], scores[i][j][1], scores[i][j][2], scores[i][j][3]);
                y[j] = vec4(scores[i][j][4], scores[i][j][5], scores[i][j][6], scores[i][j][7]);
#ifdef EPILOGUE
                uint row = min(from + 16 * i + g, rows - 1), other = min(from + 16 * i + g + 8, rows - 1);
                [[unroll]] for (uint r = 0; r < 4; r++) {
                    x[j][r] = finished(ahead[i][j][0], r, x[j][r], batch, row, min(place + r, keys - 1));
                    y[j][r] = finished(ahead[i][j][1], r, y[j][r], batch, other, min(place + r, keys - 1));
                }
#endif
                bvec4 is_one = lessThan(uvec4(place, place + 1, place + 2, place + 3), uvec4(last));
                x[j] = mix(vec4(NOTHING), x[j], is_one);
                y[j] = mix(vec4(NOTHING), y[j], is_one);
                top = max(top, vec2(greatest_of(x[j]), greatest_of(y[j])));
            }
            top = max(top, subgroupShuffleXor(top, 1));
            top = max(top, subgroupShuffleXor(top, 2));
            vec2 scale = vec2(weight(greatest[i].x, top.x), weight(greatest[i].y, top.y));
            greatest[i] = top;
            total[i] *= scale;
            [[unroll]] for (uint j = 0; j < KEY_TILES; j++) {
                x[j] = weight(x[j], top.x);
                y[j] = weight(y[j], top.y);
                total[i] += vec2(x[j].x + x[j].y + (x[j].z + x[j].w), y[j].x + y[j].y + (y[j].z + y[j].w));
                shares[i][j] = left_of(x[j], y[j]);
            }
            SUMS scales;
            [[unroll]] for (uint r = 0; r < 4; r++) {
                scales[r] = scale.x;
                scales[r + 4] = scale.y;
            }
            [[unroll]] for (uint e = 0; e < V_BLOCKS; e++)
                [[unroll]] for (uint w = 0; w < 4; w++) results[i][e][w] = results[i][e][w] * scales;
        }

        [[unroll]] for (uint j = 0; j < KEY_TILES; j++) [[unroll]] for (uint e = 0; e < V_BLOCKS; e++) {
            [[unroll]] for (uint w = 0; w < 4; w++) {
                uvec4 x = uvec4(values[j][e][0][w], values[j][e][1][w], values[j][e][2][w], values[j][e][3][w]);
                RIGHT f = right(uvec4((x.x & 0xffffu) | x.y << 16, (x.z & 0xffffu) | x.w << 16,
                                      x.x >> 16 | (x.y & 0xffff0000u), x.z >> 16 | (x.w & 0xffff0000u)));
                [[unroll]] for (uint i = 0; i < ROW_TILES; i++)
                    results[i][e][w] = coopMatMulAdd(shares[i][j], f, results[i][e][w]);
            }
        }
    }

    [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
        total[i] += subgroupShuffleXor(total[i], 1);
        total[i] += subgroupShuffleXor(total[i], 2);
    }
    uint base_o = at(batch_o, batch);
#if PARTS > 1
    [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
        uint place = (gl_SubgroupID * ROW_TILES + i) * 16 + g;
        if (t == 0) {
            tops[place] = vec2(greatest[i].x, total[i].x);
            tops[place + 8] = vec2(greatest[i].y, total[i].y);
        }
    }
    barrier(); // all tops are there
    [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
        vec2 scale;
        [[unroll]] for (uint h = 0; h < 2; h++) {
            float top = NOTHING, sum = 0.0;
            [[unroll]] for (uint p = 0; p < PARTS; p++)
                top = max(top, tops[((p * SIDES + side) * ROW_TILES + i) * 16 + g + 8 * h].x);
            [[unroll]] for (uint p = 0; p < PARTS; p++) {
                vec2 other = tops[((p * SIDES + side) * ROW_TILES + i) * 16 + g + 8 * h];
                sum += other.y * weight(other.x, top);
            }
            scale[h] = weight(greatest[i][h], top) / sum;
        }
        STORE(i, 0)
#if V_BLOCKS > 1
        STORE(i, 1)
#endif
    }
#else
    [[unroll]] for (uint i = 0; i < ROW_TILES; i++) [[unroll]] for (uint h = 0; h < 2; h++) {
        uint row = from + 16 * i + g + 8 * h;
        uint place = base_o + at(row_o, min(row, rows - 1));
        float scale = 1.0 / total[i][h];
        [[unroll]] for (uint e = 0; e < V_BLOCKS; e++) [[unroll]] for (uint s = 0; s < 2; s++) {
            uint eight = 8 * e + 2 * t + s;
            if (row < rows && eight < width)
                o[place + eight] = words(FOUR(i, e, h, s, 0) * scale, FOUR(i, e, h, s, 2) * scale);
        }
    }
#endif
}
