#version 450
// A step of Householder's reduction of symmetric or Hermitian matrices to tridiagonal ones. What the last reflection leaves to do is done to
// four rows of a workgroup, whose products with the next reflector are taken in the same pass. Every workgroup finds that
// reflector by itself, from the row of the diagonal element.
#include "matrix.glsl"
#define FOUR
#include "sums.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint k; uint tiles; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) buffer Lists { REAL lists[]; };
#ifdef WORK_IS_COMPLEX
// Products with reflectors, and the phases that make the elements beside the diagonal real.
layout(set = 0, binding = 3, std430) buffer Columns { WORK columns[]; };
#define COLUMN(which) ((which) % 2 * total_rows)
#define PHASES (2 * total_rows)
#else
#define columns lists
#define COLUMN(which) ((PRODUCTS + (which) % 2) * total_rows)
#endif

// Squares of what may be dropped beside 1, and whose own squares still have all their digits.
#ifdef REAL_IS_F64
const REAL NEGLIGIBLE = 1e-250LF;
#else
const REAL NEGLIGIBLE = 1e-24;
#endif

shared WORK head;

// Numbers of four rows, `apart` from one to the next, the first `count` of which there are.
#define FOUR_OF(buffer, at, apart, count) \
    WORK4( \
        count > 0 ? nxv_load(buffer, at) : WORK(0), \
        count > 1 ? nxv_load(buffer, at + apart) : WORK(0), \
        count > 2 ? nxv_load(buffer, at + 2 * apart) : WORK(0), \
        count > 3 ? nxv_load(buffer, at + 3 * apart) : WORK(0))

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, matrix = job / tiles, tile = job % tiles;
    uint first = k + 1 + tile * 4, at = matrix * n * n, count = first < n ? n - first : 0;
    if (tile > 0 && count == 0) return;
    uint list = matrix * padded, reflector = at + (k - 1) * n, late = k > 0 ? count : 0;
    uint before = list + COLUMN(k + 1), after = list + COLUMN(k);
    REAL tau = k > 0 ? nxv_load(lists, list + TAUS * total_rows + k - 1) : REAL(0);
    WORK here = k > 0 ? nxv_load(columns, before + k) : WORK(0);
    WORK4 row_last = FOUR_OF(v, reflector + first, 1, late), row_other = FOUR_OF(columns, before + first, 1, late);

    WORK last[ITEMS], other[ITEMS], next[ITEMS];
#ifdef EARLY
    WORK4 cells[ITEMS];
#endif
    REAL part = REAL(0);
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = k + own + i * TILE;
        bool is_in = j < n, is_late = is_in && k > 0;
        last[i] = is_late ? nxv_load(v, reflector + j) : WORK(0);
        other[i] = is_late ? nxv_load(columns, before + j) : WORK(0);
        next[i] = is_in ? CONJUGATE(nxv_load(a, at + k * n + j)) : WORK(0);
#ifdef EARLY
        uint rows = is_in ? count : 0;
        cells[i] = FOUR_OF(a, at + first * n + j, n, rows);
#endif
        part += REAL_OF(TIMES(CONJUGATE(last[i]), other[i]));
    }
    REAL share = tau * tau * REAL(0.5) * total(part);
    here = tau * here - OF_REAL(share);
    row_other = tau * row_other - share * row_last;
    part = REAL(0);
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = k + own + i * TILE;
        other[i] = tau * other[i] - share * last[i];
        if (k > 0) next[i] -= TIMES(last[i], CONJUGATE(here)) + other[i];
        if (j > k + 1 && j < n) part += SQUARE(next[i]);
        if (j == k + 1) head = next[i];
    }
    if (own == 0 && k + 1 >= n) head = WORK(0);
    REAL tail = total(part);
    WORK x = head;
    bool is_done = tail <= NEGLIGIBLE;
    REAL norm = sqrt(SQUARE(x) + tail);
#ifdef WORK_IS_COMPLEX
    REAL size = magnitude(x), reach = (size + norm) / norm, beside = is_done ? size : norm;
    WORK away = phase(x), to = is_done ? x : -norm * away;
    WORK factor = is_done ? WORK(0) : conjugate(away) / (size + norm);
#else
    WORK to = is_done ? x : x > WORK(0) ? -norm : norm, beside = to, reach = (to - x) / to;
    WORK factor = is_done ? WORK(0) : WORK(1) / (x - to);
#endif
    if (tile == 0 && own == 0) {
        nxv_store(lists, list + DIAGONAL * total_rows + k, REAL_OF(next[0]));
        nxv_store(lists, list + BESIDE * total_rows + k, beside);
        nxv_store(lists, list + TAUS * total_rows + k, is_done ? REAL(0) : reach);
#ifdef WORK_IS_COMPLEX
        WORK now = k > 0 ? nxv_load(columns, list + PHASES + k) : ONE;
        if (k == 0) nxv_store(columns, list + PHASES, now);
        if (k + 1 < n) nxv_store(columns, list + PHASES + k + 1, phase(times(now, phase(to))));
#endif
    }
    WORK4 sums = WORK4(0);
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = k + own + i * TILE;
        bool is_in = j > k && j < n;
        uint rows = is_in ? count : 0;
        WORK y = !is_in ? WORK(0) : j == k + 1 ? ONE : TIMES(next[i], factor);
        if (tile == 0 && is_in) nxv_store(v, at + k * n + j, y);
#ifdef EARLY
        WORK4 cell = cells[i];
#else
        WORK4 cell = FOUR_OF(a, at + first * n + j, n, rows);
#endif
        cell -= TIMES(CONJUGATE(other[i]), row_last) + TIMES(CONJUGATE(last[i]), row_other);
        sums += TIMES(y, cell);
        [[unroll]] for (uint row = 0; row < 4; row++) {
            if (row < rows) nxv_store(a, at + (first + row) * n + j, cell[row]);
        }
    }
    sums = total(sums);
    if (own == 0) {
        [[unroll]] for (uint row = 0; row < 4; row++) {
            if (row < count) nxv_store(columns, after + first + row, sums[row]);
        }
    }
}
