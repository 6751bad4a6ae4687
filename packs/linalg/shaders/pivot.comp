#version 450
// Factors a block of SIDE columns with pivots; columns lie in one piece each. Rows stay where they are: each has a position, and
// what would be a swap of rows is one of positions. An invocation keeps ROWS rows of WIDTH columns at a time in registers. Rows
// of the upper factor go to another matrix, in order.
#ifndef SOLO
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
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
#else
#define GROUPS MOST_SUBGROUPS
#define GROUP gl_SubgroupID
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
#define ALL_GROUPS gl_NumSubgroups
#define MOST(x) subgroupMax(x)
#define LEAST(x) subgroupMin(x)
#endif

// How large an element is, as a number that subgroups compare fast: NaN is no pivot, and what has its place is not even that.
#ifdef WORK_IS_F64
#define KEY double
const KEY NO_KEY = -2.0LF;
KEY key_of(WORK x) { return nxv_is_nan(x) ? KEY(-1) : abs(x); }
#else
#define KEY uint
const KEY NO_KEY = 0;
KEY key_of(WORK x) { return nxv_is_nan(x) ? 1 : floatBitsToUint(abs(x)) + 2; }
#endif

// Candidates of subgroups for a pivot, and their rows.
shared KEY keys[2][GROUPS];
shared uint positions[2][GROUPS];
shared WORK4 candidates[2][GROUPS][FOURS];
// The rows of each panel's pivots: factors left of the diagonal.
shared WORK4 heads[SIDE / WIDTH][WIDTH][FOURS];
shared WORK4 lifted[WIDTH][FOURS];

WORK4 cells[ROWS][FOURS];
uint position[ROWS];
uint own;
uint job;

// Brings the panel from column `base` on up to date with the panel of pivots from position `from` on.
void lift(uint panel, uint from, uint base) {
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint row = position[r] - from;
        if (row < WIDTH) [[unroll]] for (uint j = 0; j < FOURS; j++) lifted[row][j] = cells[r][j];
    }
    barrier(); // rows of pivots are there
    if (own < WIDTH) {
        WORK x[WIDTH];
        [[unroll]] for (uint k = 0; k < WIDTH; k++) x[k] = lifted[k][own / 4][own % 4];
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            [[unroll]] for (uint j = 0; j < k; j++) x[k] -= heads[panel][k][j / 4][j % 4] * x[j];
            lifted[k][own / 4][own % 4] = x[k];
            if (base + own < n) nxv_store(u, (job * n + from + k) * count + base + own, x[k]);
        }
    }
    barrier(); // they are rows of the upper factor
    UNROLL for (uint r = 0; r < ROWS; r++) {
        if (position[r] < from + WIDTH || position[r] >= n) continue;
        uint at = job * n * count + from * n + own + TILE * r;
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            WORK factor = nxv_load(a, at + k * n);
            [[unroll]] for (uint j = 0; j < FOURS; j++) cells[r][j] -= factor * lifted[k][j];
        }
    }
    barrier(); // rows are read before others take their place
}

// The pivot of column k of the panel from `base` on: its position, and which candidate it is.
uvec2 pivot_of(uint base, const uint k, uint turn) {
    KEY key = NO_KEY;
    uint where = NONE;
    WORK4 row[FOURS];
    [[unroll]] for (uint j = 0; j < FOURS; j++) row[j] = WORK4(0);
    UNROLL for (uint r = 0; r < ROWS; r++) {
        if (position[r] < base + k || position[r] >= n) continue;
        KEY other = key_of(cells[r][k / 4][k % 4]);
        if (other < key || (other == key && position[r] > where)) continue;
        key = other;
        where = position[r];
        [[unroll]] for (uint j = 0; j < FOURS; j++) row[j] = cells[r][j];
    }
    KEY most = MOST(key);
    uint least = LEAST(key == most ? where : NONE);
    if (where == least && (where != NONE || LANE == 0)) {
        keys[turn][GROUP] = key;
        positions[turn][GROUP] = where;
        [[unroll]] for (uint j = 0; j < FOURS; j++) candidates[turn][GROUP][j] = row[j];
    }
    barrier(); // every candidate is there, and those in the other half are used up
    key = NO_KEY;
    where = NONE;
    uint group = NONE;
    for (uint other = LANE; other < ALL_GROUPS; other += LANES) {
        KEY rival = keys[turn][other];
        uint place = positions[turn][other];
        if (rival < key || (rival == key && place >= where)) continue;
        key = rival;
        where = place;
        group = other;
    }
    most = MOST(key);
    least = LEAST(key == most ? where : NONE);
    return uvec2(least, LEAST(where == least ? group : NONE));
}

void eliminate(uint panel, uint base, const uint k) {
    uint step = base + k, turn = k % 2;
    if (step >= n) return;
    uvec2 pivot = pivot_of(base, k, turn);
    WORK4 above[FOURS];
    [[unroll]] for (uint j = 0; j < FOURS; j++) above[j] = candidates[turn][pivot.y][j];
    if (own < FOURS) heads[panel][k][own] = candidates[turn][pivot.y][own];
    if (own >= k && own < WIDTH && base + own < n) {
        nxv_store(u, (job * n + step) * count + base + own, candidates[turn][pivot.y][own / 4][own % 4]);
    }
    WORK diagonal = above[k / 4][k % 4];
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint before = position[r];
        if (before < step || before >= n) continue;
        if (before == pivot.x) {
            position[r] = step;
            nxv_store(order, job * n + step, own + TILE * r);
            nxv_store(pivots, job * n + step, pivot.x);
            continue;
        }
        if (before == step) position[r] = pivot.x;
        WORK factor = cells[r][k / 4][k % 4];
        if (diagonal != WORK(0)) factor /= diagonal;
        cells[r][k / 4][k % 4] = factor;
        [[unroll]] for (uint j = k + 1; j < WIDTH; j++) cells[r][j / 4][j % 4] -= factor * above[j / 4][j % 4];
    }
}

// The calls are spelled out, since a loop with barriers in it would keep the rows out of registers.
#define FOUR_STEPS(k) \
    eliminate(panel, base, k); \
    eliminate(panel, base, k + 1); \
    eliminate(panel, base, k + 2); \
    eliminate(panel, base, k + 3);

void eliminate_all(uint panel, uint base) {
    FOUR_STEPS(0)
#if WIDTH > 4
    FOUR_STEPS(4)
#endif
#if WIDTH > 8
    FOUR_STEPS(8)
    FOUR_STEPS(12)
#endif
}

void main() {
    job = nxv_workgroup();
    if (job >= jobs) return;
    own = gl_LocalInvocationIndex;
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint row = own + TILE * r;
        position[r] = row < n ? nxv_load(places, job * n + row) : NONE;
    }
    for (uint panel = 0; panel < SIDE / WIDTH; panel++) {
        uint base = start + panel * WIDTH;
        if (base >= n) break;
        UNROLL for (uint r = 0; r < ROWS; r++) {
            if (position[r] < start || position[r] >= n) continue;
            uint at = job * n * count + base * n + own + TILE * r;
            [[unroll]] for (uint j = 0; j < WIDTH; j++) {
                cells[r][j / 4][j % 4] = base + j < n ? nxv_load(a, at + j * n) : WORK(0);
            }
        }
        for (uint before = 0; before < panel; before++) lift(before, start + before * WIDTH, base);
        eliminate_all(panel, base);
        UNROLL for (uint r = 0; r < ROWS; r++) {
            if (position[r] < start || position[r] >= n) continue;
            uint at = job * n * count + base * n + own + TILE * r;
            [[unroll]] for (uint j = 0; j < WIDTH; j++) {
                if (base + j < n) nxv_store(a, at + j * n, cells[r][j / 4][j % 4]);
            }
        }
    }
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint row = own + TILE * r;
        if (row < n) nxv_store(places, job * n + row, position[r]);
    }
}
