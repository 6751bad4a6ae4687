#version 450
// Householder's reflections of WIDTH columns, each of which lies in one piece: r stays above the diagonal and on it, the reflectors
// go below, their first element being 1. The triangle t with h1 h2 ... = 1 - v t vᴴ (Schreiber and Van Loan 1989) goes to `ts`; its
// columns are 0 where there is nothing to reflect. An invocation keeps ROWS rows in registers.
#if SUBGROUP > 1
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "matrix.glsl"
#include "totals.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint start; uint n; uint last; float eps; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Ts { WORK ts[]; };

// Squares below it are not exact; a column as short as that counts as 0, or one of PARTS that have its share of it.
#ifdef REAL_IS_F64
const REAL LEAST = 1.0e-292LF / REAL(PARTS);
#else
const REAL LEAST = 1.0e-31 / REAL(PARTS);
#endif

const uint FOURS = WIDTH / 4;

shared WORK diagonal_row[WIDTH];
shared WORK shares[WIDTH]; // of the reflector in later columns
shared WORK products[WIDTH]; // with the reflectors before
shared WORK triangle[WIDTH][WIDTH];
shared WORK scale, top;
shared REAL tau;

WORK4 cells[ROWS][FOURS];

// The place of a column among registers, of whose four the first `part` columns have gone to the end.
uint place_of(uint column, uint four, uint part) {
    return column / 4 == four ? 4 * four + (column + 4 - part) % 4 : column;
}

// What the reflection of column k does to the others, from products of columns below the diagonal.
void plan_reflection(uint four, uint part) {
    uint own = gl_LocalInvocationIndex, k = 4 * four + part;
    REAL tail = REAL_OF(total(4 * four));
    WORK x = diagonal_row[k];
    REAL norm = sqrt(SQUARE(x) + tail);
#ifdef WORK_IS_COMPLEX
    WORK away = phase(x), to = -norm * away, head = (magnitude(x) + norm) * away;
    bool is_done = norm * norm < LEAST || (m == n && start + k + 1 == n);
#else
    WORK to = tail < WORK(eps) && x < WORK(0) ? -norm : norm;
    WORK head = x * to > WORK(0) ? -tail / (x + to) : x - to;
    bool is_done = tail < LEAST || head == WORK(0);
#endif
    REAL share = is_done ? REAL(0) : REAL(2) * SQUARE(head) / (tail + SQUARE(head));
    WORK inverse = is_done ? WORK(0) : OVER(ONE, head);
    WORK product = is_done ? WORK(0) : diagonal_row[own] + TIMES(total(place_of(own, four, part)), CONJUGATE(inverse));
    shares[own] = share * product;
    products[own] = product;
    if (own > 0) return;
    tau = share;
    scale = inverse;
    top = is_done ? x : to;
}

// Products of the column whose turn it is with all of them, and what is on the diagonal's row.
void multiply(const uint four, uint part) {
    uint own = gl_LocalInvocationIndex, k = 4 * four + part;
    WORK4 products_of[FOURS];
    [[unroll]] for (uint j = 0; j < FOURS; j++) products_of[j] = WORK4(0);
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = own + TILE * r;
        if (i == k) {
            [[unroll]] for (uint j = 0; j < FOURS; j++) {
                [[unroll]] for (uint e = 0; e < 4; e++) diagonal_row[4 * j + (j == four ? (e + part) % 4 : e)] = cells[r][j][e];
            }
        }
        if (i <= k) continue;
        [[unroll]] for (uint j = 0; j < FOURS; j++) products_of[j] += TIMES(CONJUGATE(cells[r][four][0]), cells[r][j]);
    }
    WORK sums[WIDTH];
    [[unroll]] for (uint j = 0; j < WIDTH; j++) sums[j] = products_of[j / 4][j % 4];
    add_up(sums);
}

// Four columns, each of which is the first of its four when its turn comes: indices of registers are constants.
void reflect(const uint four) {
    uint own = gl_LocalInvocationIndex;
    for (uint part = 0; part < 4; part++) {
        uint k = 4 * four + part;
        bool is_column = start + k < last;
        WORK4 share[FOURS];
        if (is_column) {
            multiply(four, part);
            barrier(); // every subgroup's sums are there, and the row on the diagonal
            if (own < WIDTH) plan_reflection(four, part);
            barrier(); // the reflection is known
            [[unroll]] for (uint j = four; j < FOURS; j++) {
                [[unroll]] for (uint e = 0; e < 4; e++) share[j][e] = shares[4 * j + (j == four ? (e + part) % 4 : e)];
            }
        }
        UNROLL for (uint r = 0; r < ROWS; r++) {
            uint i = own + TILE * r;
            WORK4 current = cells[r][four];
            cells[r][four] = SHIFTED(current);
            if (!is_column || i < k) continue;
            WORK reflector = i == k ? ONE : TIMES(current[0], scale);
            WORK4 rest = current - TIMES(reflector, share[four]);
            if (part < 3) cells[r][four][0] = rest[1];
            if (part < 2) cells[r][four][1] = rest[2];
            if (part < 1) cells[r][four][2] = rest[3];
            if (i == k || tau != REAL(0)) cells[r][four][3] = i == k ? top : reflector;
            [[unroll]] for (uint j = four + 1; j < FOURS; j++) cells[r][j] -= TIMES(reflector, share[j]);
        }
        if (is_column && own < WIDTH) {
            WORK sum = WORK(0);
            for (uint j = 0; j < k; j++) sum += TIMES(triangle[own][j], CONJUGATE(products[j]));
            triangle[own][k] = own < k ? -tau * sum : own == k ? OF_REAL(tau) : WORK(0);
        }
    }
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint first = job * m * n + start * m;
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = start + own + TILE * r;
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            // A load without a condition does not wait for the one before.
            WORK x = nxv_load(a, first + min(j, last - 1 - start) * m + min(i, m - 1));
            cells[r][j / 4][j % 4] = i < m && start + j < last ? x : WORK(0);
        }
    }
    if (own < WIDTH) for (uint j = 0; j < WIDTH; j++) triangle[own][j] = WORK(0);
    reflect(0);
#if WIDTH > 4
    reflect(1);
#endif
#if WIDTH > 8
    reflect(2);
    reflect(3);
#endif
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = start + own + TILE * r;
        if (i >= m) continue;
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            if (start + j < last) nxv_store(a, first + j * m + i, cells[r][j / 4][j % 4]);
        }
    }
    if (own >= WIDTH) return;
    uint blocks = (last + WIDTH - 1) / WIDTH;
    uint at = ((job * blocks + start / WIDTH) * WIDTH + own) * WIDTH;
    for (uint j = 0; j < WIDTH; j++) nxv_store(ts, at + j, triangle[own][j]);
}
