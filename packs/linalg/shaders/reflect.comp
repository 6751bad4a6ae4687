#version 450
// Householder's reflections of WIDTH columns, each of which lies in one piece: r stays above the diagonal and on it, the reflectors
// go below, their first element being 1. The triangle t with h1 h2 ... = 1 - v t vᴴ (Schreiber and Van Loan 1989) goes to `ts`; its
// columns are 0 where there is nothing to reflect. An invocation keeps ROWS rows in registers. A column whose squares would not be
// numbers is multiplied with a power of two first, of which only r knows afterwards. With SOME only those matrices that are chosen.
#if SUBGROUP > 1
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "matrix.glsl"
#include "totals.glsl"
#include "powers.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint start; uint n; uint last; float eps; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Ts { WORK ts[]; };
#ifdef SOME
layout(set = 0, binding = 2, std430) readonly buffer Chosen { uint chosen[]; };
#endif

// Sums of squares below LEAST are not exact, and products of numbers beyond MOST may not be finite. What is NEGLIGIBLE beside the
// square of a diagonal element changes its length by less than a sixteenth of the last digit.
#ifdef REAL_IS_F64
const REAL LEAST = 1.0e-292LF, MOST = 1.0e300LF, NEGLIGIBLE = 1.9e-34LF;
#else
const REAL LEAST = 1.0e-31, MOST = 1.0e36, NEGLIGIBLE = 5.5e-17;
#endif

const uint FOURS = WIDTH / 4;

shared WORK diagonal_row[WIDTH];
shared WORK shares[WIDTH]; // of the reflector in later columns
shared WORK products[WIDTH]; // with the reflectors before
shared WORK triangle[WIDTH][WIDTH];
shared WORK scale, top;
shared REAL tau;
shared bool is_extreme; // the column whose turn it is has no sums of squares
shared uint largest;    // what its largest number begins with

WORK4 cells[ROWS][FOURS];

// The place of a column among registers, of whose four the first `part` columns have gone to the end.
uint place_of(uint column, uint four, uint part) {
    return column / 4 == four ? 4 * four + (column + 4 - part) % 4 : column;
}

// What the reflection of column k does to the others, from products of columns below the diagonal. The column has been multiplied
// with `power`, or is `raw`.
void plan_reflection(uint four, uint part, bool raw, REAL power) {
    uint own = gl_LocalInvocationIndex, k = 4 * four + part;
    REAL tail = REAL_OF(total(4 * four));
    WORK x = diagonal_row[k];
    REAL negligible = NEGLIGIBLE * SQUARE(x);
    REAL norm = sqrt(SQUARE(x) + tail);
#ifdef WORK_IS_COMPLEX
    WORK away = phase(x), to = -norm * away, head = (magnitude(x) + norm) * away;
    bool is_done = norm == REAL(0) || (m == n && start + k + 1 == n);
    REAL share = is_done ? REAL(0) : REAL(1) + magnitude(x) / norm;
#else
    WORK to = tail < WORK(eps) * power * power && x < WORK(0) ? -norm : norm;
    bool is_alike = x * to > WORK(0);
    WORK head = is_alike ? -tail / (x + to) : x - to;
    bool is_done = tail == WORK(0) || (is_alike && tail <= negligible);
    WORK share = is_done ? WORK(0) : -head / to;
#endif
    WORK inverse = is_done ? WORK(0) : OVER(ONE, head);
    WORK beside = diagonal_row[own], below = total(place_of(own, four, part)), factor = CONJUGATE(inverse);
    shares[own] = is_done ? WORK(0) : share * beside + TIMES(below, share * factor);
    products[own] = is_done ? WORK(0) : beside + TIMES(below, factor);
    if (raw && (max(tail, negligible) < LEAST || !(norm * norm <= MOST && extent_of(below) <= MOST))) is_extreme = true;
    if (own > 0) return;
    tau = share;
    scale = inverse;
    top = (is_done ? x : to) / power;
    largest = 0;
}

// Makes the largest magnitude in column k about 1, from the diagonal on; gives what it is multiplied with.
REAL normalize(const uint four, uint k) {
    uint own = gl_LocalInvocationIndex;
    REAL most = REAL(0);
    UNROLL for (uint r = 0; r < ROWS; r++) {
        if (own + TILE * r >= k) most = max(most, extent_of(cells[r][four][0]));
    }
    atomicMax(largest, first_bits(most));
    barrier(); // the largest is known, and everybody has seen that it was asked for
    REAL power = power_for(largest);
    if (own == 0) is_extreme = false;
    UNROLL for (uint r = 0; r < ROWS; r++) {
        if (own + TILE * r >= k) cells[r][four][0] *= power;
    }
    return power;
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
            REAL power = REAL(1);
            for (bool raw = true;; raw = false) {
                multiply(four, part);
                barrier(); // every subgroup's sums are there, and the row on the diagonal
                if (own < WIDTH) plan_reflection(four, part, raw, power);
                barrier(); // the reflection is known
                if (!is_extreme) break;
                power = normalize(four, k);
            }
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
            cells[r][four][3] = i == k ? top : reflector;
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
#ifdef SOME
    if (nxv_load(chosen, job) == 0) return;
#endif
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
    if (own == 0) {
        is_extreme = false;
        largest = 0;
    }
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
