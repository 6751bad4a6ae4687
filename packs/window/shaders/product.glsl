// What a subgroup has of the product of a packed kernel and a packed x, and how it stores that.
//
// This relies on NVIDIA's order of elements in a fragment (g = lane / 4, t = lane % 4), which Vulkan does not promise and the
// host has measured on this device:
//   A 16x16       0, 1: row g, columns 2t, 2t + 1; 2, 3: columns + 8; 4 to 7: the same of row g + 8
//   B 16x16       0, 1: rows 2t, 2t + 1, column g; 2, 3: rows + 8; 4 to 7: the same of column g + 8
//   accumulator   as A
// Along the elements of a filter the order is anything, as long as both operands have the same: lane t has eight of a step's 32.
#include "matrix.glsl"
#include "finish.glsl"
#include "fragment.glsl"

#if PIECE == 8
#define PLACE uint
#else
#define PLACE uvec2
#endif

layout(local_size_x = 32 * WARPS_M * WARPS_N) in;
#if STAGED
layout(set = 0, binding = 1, std430) readonly restrict buffer X { LOADED_TYPE x[]; };
#elif WHOLE_PIECES
layout(set = 0, binding = 1, std430) readonly restrict buffer X { uvec4 packed_x[]; };
#else
layout(set = 0, binding = 1, std430) readonly restrict buffer X { uvec2 packed_x[]; };
#endif
layout(set = 0, binding = 2, std430) readonly restrict buffer Kernel { uvec4 packed_kernel[]; };
layout(set = 0, binding = 3, std430) readonly restrict buffer Places { PLACE places[]; };
layout(set = 0, binding = 4, std430) writeonly restrict buffer Results { RESULT results[]; };

// What is said for each fragment along filters or positions, or each filter of a lane. Loops would do, but NVIDIA's driver keeps
// in memory what it does not unroll: 231 us instead of 30.
#if TILE_M == 4
#define EACH_M(X, a, b) X(0, a, b) X(1, a, b) X(2, a, b) X(3, a, b)
#elif TILE_M == 2
#define EACH_M(X, a, b) X(0, a, b) X(1, a, b)
#else
#define EACH_M(X, a, b) X(0, a, b)
#endif
#if TILE_N == 4
#define EACH_N(X, a) X(0, a) X(1, a) X(2, a) X(3, a)
#define EACH_RUN(X) X(0) X(1)
#else
#define EACH_N(X, a) X(0, a) X(1, a)
#define EACH_RUN(X) X(0)
#endif

MATRIX_C sums[TILE_M][TILE_N];
#if !STAGED
uint bases[TILE_N][2];
#endif

// Where positions lie in the result.
uint result_at(uint position, uint group) {
    uint at = group * params.result_group;
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(position, params.spatial[k].positions, params.spatial[k].by_positions);
        at += (position - outer * params.spatial[k].positions) * params.spatial[k].result_step;
        position = outer;
    }
    return at + position * params.result_batch;
}

// Where positions start in the packed x.
uint packed_at(uint position, uint group) {
    uint at = group * params.group_pieces;
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(position, params.spatial[k].positions, params.spatial[k].by_positions);
        at += (position - outer * params.spatial[k].positions) * params.spatial[k].position_step;
        position = outer;
    }
    return at + position * params.batch_pieces;
}

uint start_at(uint position, uint group) {
#if IN_PLACE
    return params.first_piece + packed_at(position, group);
#else
    return packed_at(position, group);
#endif
}

// Position `row` (0 or 1 for columns g and g + 8) of fragment j within the subgroup's: those that a lane holds at the end are
// runs of eight.
uint own_position(uint j, uint row, uint g) {
    return 8 * (g >> 1) + 32 * (j >> 1) + 4 * (j & 1) + 2 * row + (g & 1);
}

#if WHOLE_PIECES
bool is_there(uint place) { return WHOLE == 1 || place != NOWHERE; }

// The eight elements that a lane has of a column in one step; of an x in place, any where there is no piece.
uvec4 load_piece(uint base, uint place) {
    return nxv_load(packed_x, is_there(place) ? base + place : params.x_pieces);
}

// What has been loaded, with zeros where there is no piece: asked for at once, it would be waited for.
uvec4 column_of(uvec4 elements, uint place) {
#if IN_PLACE && !WHOLE
    return elements & (is_there(place) ? 0xffffffffu : 0u);
#else
    return elements;
#endif
}
#elif !STAGED
// Elements 4 part to 4 part + 3 of the eight that a lane has of a column in one step, or one of their parts.
uvec2 load_column(uint base, PLACE place, uint part, uint plane) {
#if PIECE == 8
    uint at = (base + place) * 2 + part, zeros = params.x_pieces * 2;
    bool is_there = place != NOWHERE;
#else
    uint at = base + place[part], zeros = params.x_pieces;
    bool is_there = place[part] != NOWHERE;
#endif
#if WHOLE
    is_there = true;
#endif
    return nxv_load(packed_x, (is_there ? at : zeros) + plane * (params.x_pieces + 1) * (PIECE / 4));
}
#endif

uvec4 load_rows(uint at) { return nxv_load(packed_kernel, at); }

#if PLANES > 1
const float SCALE = 0.0078125; // 2^-7

// Adds the products of the parts of `rows[turn]` with those of columns, x_first to x_third. Products of parts p and q are left out
// where p + q is not below PLANES: with three at most 2^-26 of the product, to either side (2^-24 where a factor is next to
// overflowing), with two at most 3 2^-16, what the parts lack included.
//
// Matrix units cut sums off: those of 16 elements start at 0 and are added by the ALU, which rounds. Products of first parts have
// 16 bits, so that hardly anything of their sum is cut off, and what is of the others' counts for 2^-7 and 2^-14 as much.
#if PLANES > 2
#define THIRD(x) x
#define SMALLER(e) fma(ELEMENT(third, e), SCALE, ELEMENT(second, e))
#else
#define THIRD(x)
#define SMALLER(e) ELEMENT(second, e)
#endif
#define ROUND(w, j, e) ELEMENT(sums[w][j], e) += fma(SMALLER(e), SCALE, ELEMENT(first, e));
#define ADD_PARTS(w, j, turn) { \
        MATRIX_A upper = rows_of(rows[turn][0][w]), middle = rows_of(rows[turn][1][w]); \
        THIRD(MATRIX_A lower = rows_of(rows[turn][2][w]);) \
        MATRIX_C first = MULTIPLY(upper, x_first, MATRIX_C_ZERO); \
        MATRIX_C second = MULTIPLY(upper, x_second, MATRIX_C_ZERO); \
        THIRD(MATRIX_C third = MULTIPLY(upper, x_third, MATRIX_C_ZERO);) \
        second = MULTIPLY(middle, x_first, second); \
        THIRD(third = MULTIPLY(middle, x_second, third); third = MULTIPLY(lower, x_first, third);) \
        ROUND(w, j, 0) ROUND(w, j, 1) ROUND(w, j, 2) ROUND(w, j, 3) ROUND(w, j, 4) ROUND(w, j, 5) ROUND(w, j, 6) ROUND(w, j, 7) \
    }

#define COUNTS 5
#include "unfit.glsl"

// Has everything computed anew where a sum is unfit.
void check_sums() {
    bool unfit = false;
#define CHECK_ONE(w, j, e) unfit = unfit || is_unfit(ELEMENT(sums[w][j], e));
#define CHECK(w, j, a) \
    CHECK_ONE(w, j, 0) CHECK_ONE(w, j, 1) CHECK_ONE(w, j, 2) CHECK_ONE(w, j, 3) \
    CHECK_ONE(w, j, 4) CHECK_ONE(w, j, 5) CHECK_ONE(w, j, 6) CHECK_ONE(w, j, 7)
#define CHECK_COLUMN(j, a) EACH_M(CHECK, j, a)
    EACH_N(CHECK_COLUMN, 0)
    if (unfit) compute_anew();
}
#endif

// What the subgroup computes: false where nothing.
uint group, tile_m, first_column, split, start, end;
bool begin() {
    uint id = nxv_workgroup();
    if (id >= params.jobs) return false;
    uint blocks = params.blocks_m * params.blocks_n;
    uint slab = id / blocks;
    id -= slab * blocks;
    split = slab / params.groups;
    group = slab - split * params.groups;
    tile_m = id % params.blocks_m * WARPS_M + SUBGROUP % WARPS_M;
    first_column = (id / params.blocks_m * WARPS_N + SUBGROUP / WARPS_M) * POSITIONS;
    start = split * params.chunk;
    end = min(start + params.chunk, params.steps);
    if (tile_m >= params.tiles_m || first_column >= params.columns) return false;
#if STAGED
#define START(j, row)
#else
#define START(j, row) bases[j][row] = start_at(min(first_column + own_position(j, row, LANE >> 2), params.columns - 1), group);
#endif
#define CLEAR(w, j, a) sums[w][j] = MATRIX_C_ZERO;
#define BEGIN(j, a) START(j, 0) START(j, 1) EACH_M(CLEAR, j, a)
    EACH_N(BEGIN, 0)
    return true;
}

// Where the packed kernel starts for this subgroup.
uint kernel_at() {
    return ((group * params.tiles_m + tile_m) * params.steps + start) * (64 * TILE_M * PLANES) + LANE;
}

#if WIDE_RESULT && WIDTH == 4
#define PACKED(v, i) vec4(v[i], v[i + 1], v[i + 2], v[i + 3])
#elif WIDE_RESULT && WIDTH == 2
#define PACKED(v, i) vec2(v[i], v[i + 1])
#elif WIDE_RESULT
#define PACKED(v, i) v[i]
#elif WIDTH == 8
#define PACKED(v, i) uvec4(both(v[0], v[1]), both(v[2], v[3]), both(v[4], v[5]), both(v[6], v[7]))
#elif WIDTH == 4
#define PACKED(v, i) uvec2(both(v[i], v[i + 1]), both(v[i + 2], v[i + 3]))
#elif WIDTH == 2
#define PACKED(v, i) both(v[i], v[i + 1])
#else
#define PACKED(v, i) uint16_t(both(v[i], 0.0))
#endif

// What becomes of a sum at a place of the result (see around(); one run has one place in front of the filters), for a filter of
// the group's. What neighbours have of the operands is asked for where nothing is stored, too: then it is that of others.
#ifdef EPILOGUE
uvec2 place_of(uint start) {
    return around(start == NOWHERE ? 0 : start - group * params.result_group);
}

Neighbours neighbours_of(uvec2 at, uint own_filter) {
    uint last = params.filters - (ALONG_FILTERS == 1 ? WIDTH : 1);
    return neighbours_at(at.x, group * params.filters + min(own_filter, last), at.y);
}
#define FINISH(own, i, sum, at, own_filter, further) \
    finished(own, i, sum, at.x, group * params.filters + (own_filter), at.y + (further))
#else
#define Neighbours uint
#define place_of(start) uvec2(0)
#define neighbours_of(at, own_filter) 0u
#define FINISH(own, i, sum, at, own_filter, further) (sum)
#endif

// Where runs of positions lie in the result; nowhere behind the last.
#if ALONG_FILTERS
#define RUN_WIDTH 1
#else
#define RUN_WIDTH WIDTH
#endif
uint starts[TILE_N / 2][8 / RUN_WIDTH];

void find_runs() {
    [[unroll]] for (uint q = 0; q < TILE_N / 2; ++q) {
        [[unroll]] for (uint i = 0; i < 8; i += RUN_WIDTH) {
            uint position = first_column + 8 * (LANE & 3) + 32 * q + i;
            starts[q][i / RUN_WIDTH] = position < params.columns ? split * params.results + result_at(position, group) : NOWHERE;
        }
    }
}

// The result of filter 2w + r of the lane's at position i of its run q.
#define VALUE(w, q, r, i) ELEMENT(sums[w][2 * q + (i) / 4], (i) % 4 + 4 * r)

#if ALONG_FILTERS
#if TILE_M == 4
#define FILTERS_AT(q, i) \
    float[8](VALUE(0, q, 0, i), VALUE(0, q, 1, i), VALUE(1, q, 0, i), VALUE(1, q, 1, i), \
             VALUE(2, q, 0, i), VALUE(2, q, 1, i), VALUE(3, q, 0, i), VALUE(3, q, 1, i))
#elif TILE_M == 2
#define FILTERS_AT(q, i) float[4](VALUE(0, q, 0, i), VALUE(0, q, 1, i), VALUE(1, q, 0, i), VALUE(1, q, 1, i))
#else
#define FILTERS_AT(q, i) float[2](VALUE(0, q, 0, i), VALUE(0, q, 1, i))
#endif
#define OF_FILTERS (2 * TILE_M / WIDTH)

// Filters from `first` on at one position.
void store_filters(Neighbours own[OF_FILTERS], uint start, uvec2 at, uint first, float values[2 * TILE_M]) {
    [[unroll]] for (uint f = 0; f < 2 * TILE_M; f += WIDTH) {
        if (start != NOWHERE && first + f < params.filters) {
            float made[2 * TILE_M];
            [[unroll]] for (uint i = 0; i < WIDTH; ++i) made[f + i] = FINISH(own[f / WIDTH], i, values[f + i], at, first + f + i, 0);
            nxv_store(results, (start + first + f) / WIDTH, PACKED(made, f));
        }
    }
}
#else
#define OF_POSITIONS (8 / WIDTH)

// One filter at a run of positions.
void store_positions(Neighbours own[OF_POSITIONS], uint q, uint filter_index, float values[8]) {
    [[unroll]] for (uint i = 0; i < 8; i += WIDTH) {
        if (starts[q][i / WIDTH] != NOWHERE && filter_index < params.filters) {
            uint start = starts[q][i / WIDTH];
            uvec2 at = place_of(start);
            float made[8];
            [[unroll]] for (uint k = 0; k < WIDTH; ++k) made[i + k] = FINISH(own[i / WIDTH], k, values[i + k], at, filter_index, k);
            nxv_store(results, (start + filter_index * params.result_filter) / WIDTH, PACKED(made, i));
        }
    }
}
#endif

// A lane has 2 TILE_M filters, one after the other, at runs of eight positions.
void store_sums() {
    uint first = tile_m * FILTERS + (LANE >> 2) * (2 * TILE_M);
    find_runs();
#if ALONG_FILTERS
    // As many positions at a time as there are registers for.
#define READ(q, i) \
    at[i] = place_of(starts[q][i]); \
    [[unroll]] for (uint f = 0; f < OF_FILTERS; ++f) own[i][f] = neighbours_of(at[i], first + f * WIDTH);
#define AT(q, i) store_filters(own[i], starts[q][i], at[i], first, FILTERS_AT(q, i));
#define FOUR(of, q, i) of(q, i) of(q, i + 1) of(q, i + 2) of(q, i + 3)
#if OF_FILTERS == 1
#define EIGHT(q) FOUR(READ, q, 0) FOUR(READ, q, 4) FOUR(AT, q, 0) FOUR(AT, q, 4)
#else
#define EIGHT(q) FOUR(READ, q, 0) FOUR(AT, q, 0) FOUR(READ, q, 4) FOUR(AT, q, 4)
#endif
#define RUN(q) { \
        uvec2 at[8]; \
        Neighbours own[8][OF_FILTERS]; \
        EIGHT(q) \
    }
#else
#define READ(w, q, r) \
    [[unroll]] for (uint i = 0; i < OF_POSITIONS; ++i) own[2 * w + r][i] = neighbours_of(place_of(starts[q][i]), first + 2 * w + r);
#define OF(w, q, r) store_positions(own[2 * w + r], q, first + 2 * w + r, float[8](VALUE(w, q, r, 0), VALUE(w, q, r, 1), \
    VALUE(w, q, r, 2), VALUE(w, q, r, 3), VALUE(w, q, r, 4), VALUE(w, q, r, 5), VALUE(w, q, r, 6), VALUE(w, q, r, 7)));
#define READ_BOTH(w, q, a) READ(w, q, 0) READ(w, q, 1)
#define BOTH_OF(w, q, a) OF(w, q, 0) OF(w, q, 1)
#define RUN(q) { \
        Neighbours own[2 * TILE_M][OF_POSITIONS]; \
        EACH_M(READ_BOTH, q, 0) \
        EACH_M(BOTH_OF, q, 0) \
    }
#endif
    EACH_RUN(RUN)
}
