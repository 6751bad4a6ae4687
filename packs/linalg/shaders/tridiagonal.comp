#version 450
// A step of Householder's reduction of symmetric matrices to tridiagonal ones. What the last reflection leaves to do is done to
// ROWS rows of a workgroup, whose products with the next reflector are taken in the same pass. Every workgroup finds that
// reflector by itself, from the row of the diagonal element.
#include "matrix.glsl"
#include "sums.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint k; uint tiles; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) buffer Lists { WORK lists[]; };

// Squares of what may be dropped beside 1, and whose own squares still have all their digits.
#ifdef WORK_IS_F64
const WORK NEGLIGIBLE = 1e-250LF;
#else
const WORK NEGLIGIBLE = 1e-24;
#endif

shared WORK head;

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, matrix = job / tiles, tile = job % tiles;
    uint first = k + 1 + tile * ROWS, at = matrix * n * n;
    if (tile > 0 && first >= n) return;
    uint list = matrix * padded, reflector = at + (k - 1) * n;
    uint before = list + (PRODUCTS + (k + 1) % 2) * total_rows, after = list + (PRODUCTS + k % 2) * total_rows;
    WORK tau = k > 0 ? nxv_load(lists, list + TAUS * total_rows + k - 1) : WORK(0);

    WORK last[ITEMS], other[ITEMS], next[ITEMS], of_row[ROWS][2];
#ifdef EARLY
    WORK cells[ROWS][ITEMS];
#endif
    WORK part = WORK(0);
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = k + own + i * TILE;
        bool is_in = j < n, is_late = is_in && k > 0;
        last[i] = is_late ? nxv_load(v, reflector + j) : WORK(0);
        other[i] = is_late ? nxv_load(lists, before + j) : WORK(0);
        next[i] = is_in ? nxv_load(a, at + k * n + j) : WORK(0);
        part += last[i] * other[i];
#ifdef EARLY
        UNROLL for (uint row = 0; row < ROWS; row++) {
            cells[row][i] = is_in && first + row < n ? nxv_load(a, at + (first + row) * n + j) : WORK(0);
        }
#endif
    }
    WORK here = k > 0 ? nxv_load(lists, before + k) : WORK(0);
    UNROLL for (uint row = 0; row < ROWS; row++) {
        bool is_late = first + row < n && k > 0;
        of_row[row][0] = is_late ? nxv_load(v, reflector + first + row) : WORK(0);
        of_row[row][1] = is_late ? nxv_load(lists, before + first + row) : WORK(0);
    }
    WORK share = tau * tau * WORK(0.5) * total(part);
    here = tau * here - share;
    part = WORK(0);
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = k + own + i * TILE;
        other[i] = tau * other[i] - share * last[i];
        if (k > 0) next[i] -= last[i] * here + other[i];
        if (j > k + 1 && j < n) part += next[i] * next[i];
        if (j == k + 1) head = next[i];
    }
    if (own == 0 && k + 1 >= n) head = WORK(0);
    WORK tail = total(part);
    WORK x = head;
    bool is_done = tail <= NEGLIGIBLE;
    WORK norm = sqrt(x * x + tail), to = x > WORK(0) ? -norm : norm;
    if (is_done) to = x;
    WORK of_next = is_done ? WORK(0) : (to - x) / to, factor = is_done ? WORK(0) : WORK(1) / (x - to);
    if (tile == 0 && own == 0) {
        nxv_store(lists, list + DIAGONAL * total_rows + k, next[0]);
        nxv_store(lists, list + BESIDE * total_rows + k, to);
        nxv_store(lists, list + TAUS * total_rows + k, of_next);
    }
    WORK sums[ROWS];
    UNROLL for (uint row = 0; row < ROWS; row++) {
        sums[row] = WORK(0);
        of_row[row][1] = tau * of_row[row][1] - share * of_row[row][0];
    }
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = k + own + i * TILE;
        if (j <= k || j >= n) continue;
        WORK y = j == k + 1 ? WORK(1) : next[i] * factor;
        if (tile == 0) nxv_store(v, at + k * n + j, y);
#ifndef EARLY
        WORK now[ROWS];
        UNROLL for (uint row = 0; row < ROWS; row++) {
            now[row] = first + row < n ? nxv_load(a, at + (first + row) * n + j) : WORK(0);
        }
#endif
        UNROLL for (uint row = 0; row < ROWS; row++) {
            if (first + row >= n) continue;
#ifdef EARLY
            WORK cell = cells[row][i];
#else
            WORK cell = now[row];
#endif
            cell -= of_row[row][0] * other[i] + of_row[row][1] * last[i];
            nxv_store(a, at + (first + row) * n + j, cell);
            sums[row] += cell * y;
        }
    }
    totals(sums);
    UNROLL for (uint row = 0; row < ROWS; row++) {
        if (own == 0 && first + row < n) nxv_store(lists, after + first + row, sums[row]);
    }
}
