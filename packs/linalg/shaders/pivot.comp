#version 450
// Factors a block of SIDE columns with pivots; columns lie in one piece each. Rows stay where they are: each has a position, and
// what would be a swap of rows is one of positions. An invocation keeps ROWS rows of WIDTH columns at a time in registers. Rows
// of the upper factor go to another matrix, in order.
#ifndef SOLO
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#endif
#include "matrix.glsl"

const uint FOURS = WIDTH / 4;
const uint NONE = 0xffffffffu;

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint start; uint count; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer U { WORK u[]; };
layout(set = 0, binding = 2, std430) buffer Places { uint places[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Order { uint order[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Pivots { uint pivots[]; };

// Where two candidates are alike, the one at the lower position is taken.
#ifdef SOLO
#define GROUPS TILE
#define GROUP gl_LocalInvocationIndex
#define LANE 0
#define LANES 1
#define ALL_GROUPS TILE
#define MOST(x) (x)
#define LEAST(x) (x)
#define COUNT_OF(x) uint(x)
#else
#define GROUPS MOST_SUBGROUPS
#define GROUP gl_SubgroupID
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
#define ALL_GROUPS gl_NumSubgroups
#define MOST(x) subgroupMax(x)
#define LEAST(x) subgroupMin(x)
#define COUNT_OF(x) subgroupBallotBitCount(subgroupBallot(x))
#endif

// How large an element is, as a number that subgroups compare fast: NaN is no pivot, and what has its place is not even that.
#ifdef REAL_IS_F64
#define KEY uvec2
const KEY NO_KEY = KEY(0);
KEY key_of(WORK x) { return IS_NAN(x) ? KEY(1, 0) : unpackDouble2x32(MAGNITUDE(x)) + KEY(0, 1); }
bool is_less(KEY x, KEY y) { return x.y < y.y || (x.y == y.y && x.x < y.x); }
KEY most(KEY x) {
    uint upper = MOST(x.y);
    return KEY(MOST(x.y == upper ? x.x : 0), upper);
}
#else
#define KEY uint
const KEY NO_KEY = 0;
KEY key_of(WORK x) { return IS_NAN(x) ? 1 : floatBitsToUint(MAGNITUDE(x)) + 2; }
bool is_less(KEY x, KEY y) { return x < y; }
KEY most(KEY x) { return MOST(x); }
#endif

// So many candidates an invocation compares faster than a subgroup.
#define FEW 8

// Candidates of subgroups for a pivot, and their rows.
shared KEY keys[2][GROUPS];
shared uint positions[2][GROUPS];
shared WORK4 candidates[2][GROUPS][FOURS];
// The rows of each panel's pivots: factors left of the diagonal.
shared WORK4 heads[SIDE / WIDTH][WIDTH][FOURS];
shared WORK4 lifted[WIDTH][FOURS];

// What is said for each row that an invocation has. Loops would do, and are faster for f32, but NVIDIA's driver keeps rows of f64 in
// memory where there are some: 8.0 ms instead of 3.5 for 1000 of them.
#if defined(REAL_IS_F64) && ROWS == 1
#define EACH_ROW(X) X(0)
#elif defined(REAL_IS_F64) && ROWS == 2
#define EACH_ROW(X) X(0) X(1)
#elif defined(REAL_IS_F64) && ROWS == 3
#define EACH_ROW(X) X(0) X(1) X(2)
#elif defined(REAL_IS_F64) && ROWS == 4
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#elif defined(REAL_IS_F64) && ROWS == 5
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4)
#elif defined(REAL_IS_F64) && ROWS == 6
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#elif defined(REAL_IS_F64) && ROWS == 7
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6)
#elif defined(REAL_IS_F64) && ROWS == 8
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EACH_ROW(X) UNROLL for (uint r = 0; r < ROWS; r++) X(r)
#endif

WORK4 cells[ROWS][FOURS];
uint position[ROWS];
uint own;
uint job;

// Brings the panel from column `base` on up to date with the panel of pivots from position `from` on.
void lift(uint panel, uint from, uint base) {
#define SHOW(r) \
    { \
        uint row = position[r] - from; \
        if (row < WIDTH) [[unroll]] for (uint j = 0; j < FOURS; j++) lifted[row][j] = cells[r][j]; \
    }
    EACH_ROW(SHOW)
    barrier(); // rows of pivots are there
    if (own < WIDTH) {
        WORK x[WIDTH];
        [[unroll]] for (uint k = 0; k < WIDTH; k++) x[k] = lifted[k][own / 4][own % 4];
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            [[unroll]] for (uint j = 0; j < k; j++) x[k] -= TIMES(heads[panel][k][j / 4][j % 4], x[j]);
            lifted[k][own / 4][own % 4] = x[k];
            if (base + own < n) nxv_store(u, (job * n + from + k) * count + base + own, x[k]);
        }
    }
    barrier(); // they are rows of the upper factor
#define LIFT(r) \
    if (position[r] >= from + WIDTH && position[r] < n) { \
        uint at = job * n * count + from * n + own + TILE * (r); \
        [[unroll]] for (uint k = 0; k < WIDTH; k++) { \
            WORK factor = nxv_load(a, at + k * n); \
            [[unroll]] for (uint j = 0; j < FOURS; j++) cells[r][j] -= TIMES(factor, lifted[k][j]); \
        } \
    }
    EACH_ROW(LIFT)
    barrier(); // rows are read before others take their place
}

// The pivot of column `step`, which is the first of a four: its position, and which candidate it is.
uvec2 pivot_of(uint step, const uint four, uint turn) {
    KEY key = NO_KEY;
    uint where = NONE;
#define COMPARE(r) \
    { \
        KEY other = key_of(cells[r][four][0]); \
        bool is_there = position[r] >= step && position[r] < n; \
        if (is_there && !is_less(other, key) && (other != key || position[r] <= where)) { \
            key = other; \
            where = position[r]; \
        } \
    }
    EACH_ROW(COMPARE)
    // Candidates that are alike are rare.
    bool is_best = key == most(key);
    if (COUNT_OF(is_best) > 1) is_best = is_best && where == LEAST(is_best ? where : NONE);
    if (is_best) {
        keys[turn][GROUP] = key;
        positions[turn][GROUP] = where;
#define PROPOSE(r) \
    if (position[r] == where) { \
        [[unroll]] for (uint j = 0; j < FOURS; j++) candidates[turn][GROUP][j] = cells[r][j]; \
    }
        EACH_ROW(PROPOSE)
    }
    barrier(); // every candidate is there, and those in the other half are used up
    key = NO_KEY;
    where = NONE;
    uint group = NONE;
#if GROUPS <= FEW
    [[unroll]] for (uint other = 0; other < GROUPS; other++)
#else
    for (uint other = LANE; other < ALL_GROUPS; other += LANES)
#endif
    {
        KEY rival = keys[turn][other];
        uint place = positions[turn][other];
        if (is_less(rival, key) || (rival == key && place >= where)) continue;
        key = rival;
        where = place;
        group = other;
    }
#if GROUPS > FEW
    is_best = key == most(key);
    uint least = LEAST(is_best ? where : NONE);
    group = LEAST(is_best && where == least ? group : NONE);
    where = least;
#endif
    return uvec2(where, group);
}

// Four columns, each of which is the first of its four when its turn comes: indices of registers are constants.
void eliminate(uint panel, uint base, const uint four) {
    for (uint part = 0; part < 4; part++) {
        uint k = 4 * four + part, step = base + k, turn = part % 2;
        uvec2 pivot = uvec2(NONE);
        WORK4 above[FOURS];
        if (step < n) {
            pivot = pivot_of(step, four, turn);
            [[unroll]] for (uint j = four; j < FOURS; j++) above[j] = candidates[turn][pivot.y][j];
            if (own < WIDTH) {
                uint place = own / 4 == four ? (own + 4 - part) % 4 : own % 4;
                WORK x = candidates[turn][pivot.y][own / 4][place];
                heads[panel][k][own / 4][own % 4] = x;
                if (own >= k && base + own < n) nxv_store(u, (job * n + step) * count + base + own, x);
            }
        }
#define ELIMINATE(r) \
    { \
        uint before = position[r]; \
        WORK4 current = cells[r][four]; \
        cells[r][four] = SHIFTED(current); \
        bool is_row = step < n && before >= step && before < n; \
        if (is_row && before == pivot.x) { \
            position[r] = step; \
            nxv_store(order, job * n + step, own + TILE * (r)); \
            nxv_store(pivots, job * n + step, pivot.x); \
        } else if (is_row) { \
            if (before == step) position[r] = pivot.x; \
            WORK factor = current[0]; \
            if (above[four][0] != WORK(0)) factor = OVER(factor, above[four][0]); \
            WORK4 rest = current - TIMES(factor, above[four]); \
            if (part < 3) cells[r][four][0] = rest[1]; \
            if (part < 2) cells[r][four][1] = rest[2]; \
            if (part < 1) cells[r][four][2] = rest[3]; \
            cells[r][four][3] = factor; \
            [[unroll]] for (uint j = four + 1; j < FOURS; j++) cells[r][j] -= TIMES(factor, above[j]); \
        } \
    }
        EACH_ROW(ELIMINATE)
    }
}

void eliminate_all(uint panel, uint base) {
    eliminate(panel, base, 0);
#if WIDTH > 4
    eliminate(panel, base, 1);
#endif
#if WIDTH > 8
    eliminate(panel, base, 2);
    eliminate(panel, base, 3);
#endif
}

void main() {
    job = nxv_workgroup();
    if (job >= jobs) return;
    own = gl_LocalInvocationIndex;
#define PLACE(r) \
    { \
        uint row = own + TILE * (r); \
        position[r] = row < n ? nxv_load(places, job * n + row) : NONE; \
    }
    EACH_ROW(PLACE)
    for (uint panel = 0; panel < SIDE / WIDTH; panel++) {
        uint base = start + panel * WIDTH;
        if (base >= n) break;
        // A load without a condition does not wait for the one before.
#define LOAD(r) \
    { \
        uint at = job * n * count + base * n + min(own + TILE * (r), n - 1); \
        [[unroll]] for (uint j = 0; j < WIDTH; j++) { \
            WORK x = nxv_load(a, at + min(j, n - 1 - base) * n); \
            cells[r][j / 4][j % 4] = base + j < n ? x : WORK(0); \
        } \
    }
        EACH_ROW(LOAD)
        for (uint before = 0; before < panel; before++) lift(before, start + before * WIDTH, base);
        eliminate_all(panel, base);
#define STORE(r) \
    if (position[r] >= start && position[r] < n) { \
        uint at = job * n * count + base * n + own + TILE * (r); \
        [[unroll]] for (uint j = 0; j < WIDTH; j++) { \
            if (base + j < n) nxv_store(a, at + j * n, cells[r][j / 4][j % 4]); \
        } \
    }
        EACH_ROW(STORE)
    }
#define LEAVE(r) \
    { \
        uint row = own + TILE * (r); \
        if (row < n) nxv_store(places, job * n + row, position[r]); \
    }
    EACH_ROW(LEAVE)
}
