#version 450
// Householder's reflections of WIDTH columns, each of which lies in one piece: r stays above the diagonal and on it, the reflectors
// go below, their first element being 1. The triangle t with h1 h2 ... = 1 - v t vᵀ (Schreiber and Van Loan 1989) goes to `ts`; its
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

// Squares below it are not exact; a column as short as that counts as 0.
#ifdef WORK_IS_F64
const WORK LEAST = 1.0e-292LF;
#else
const WORK LEAST = 1.0e-31;
#endif

shared WORK diagonal_row[WIDTH];
shared WORK shares[WIDTH]; // of the reflector in later columns
shared WORK products[WIDTH]; // with the reflectors before
shared WORK scale, top, tau;

WORK cells[ROWS][WIDTH];
WORK t[WIDTH]; // a row of the triangle

// What the reflection of column k does to the others, from products of columns below the diagonal.
void plan_reflection(uint k) {
    uint own = gl_LocalInvocationIndex;
    WORK tail = total(k), x = diagonal_row[k];
    WORK norm = sqrt(x * x + tail);
    WORK to = tail < WORK(eps) && x < WORK(0) ? -norm : norm;
    WORK head = x * to > WORK(0) ? -tail / (x + to) : x - to;
    bool is_done = tail < LEAST || head == WORK(0);
    WORK share = is_done ? WORK(0) : WORK(2) * head * head / (tail + head * head);
    WORK inverse = is_done ? WORK(0) : WORK(1) / head;
    WORK product = is_done ? WORK(0) : diagonal_row[own] + total(own) * inverse;
    shares[own] = share * product;
    products[own] = product;
    if (own > 0) return;
    tau = share;
    scale = inverse;
    top = is_done ? x : to;
}

void reflect(const uint k) {
    if (start + k >= last) return;
    uint own = gl_LocalInvocationIndex;
    WORK sums[WIDTH];
    [[unroll]] for (uint j = 0; j < WIDTH; j++) sums[j] = WORK(0);
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = own + TILE * r;
        if (i == k) [[unroll]] for (uint j = 0; j < WIDTH; j++) diagonal_row[j] = cells[r][j];
        if (i <= k) continue;
        [[unroll]] for (uint j = 0; j < WIDTH; j++) sums[j] += cells[r][k] * cells[r][j];
    }
    add_up(sums);
    barrier(); // every subgroup's sums are there, and the row on the diagonal
    if (own < WIDTH) plan_reflection(k);
    barrier(); // the reflection is known
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = own + TILE * r;
        if (i < k) continue;
        WORK reflector = i == k ? WORK(1) : cells[r][k] * scale;
        if (i == k) cells[r][k] = top;
        else if (tau != WORK(0)) cells[r][k] = reflector;
        [[unroll]] for (uint j = k + 1; j < WIDTH; j++) cells[r][j] -= shares[j] * reflector;
    }
    if (own < WIDTH) {
        WORK sum = WORK(0);
        [[unroll]] for (uint j = 0; j < k; j++) sum += t[j] * products[j];
        t[k] = own < k ? -tau * sum : own == k ? tau : WORK(0);
    }
}

// The calls are spelled out, since a loop with barriers in it would keep the rows out of registers.
#define FOUR_STEPS(k) reflect(k); reflect(k + 1); reflect(k + 2); reflect(k + 3);

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint first = job * m * n + start * m;
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = start + own + TILE * r;
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            cells[r][j] = i < m && start + j < last ? nxv_load(a, first + j * m + i) : WORK(0);
        }
    }
    [[unroll]] for (uint j = 0; j < WIDTH; j++) t[j] = WORK(0);
    FOUR_STEPS(0)
#if WIDTH > 4
    FOUR_STEPS(4)
#endif
#if WIDTH > 8
    FOUR_STEPS(8)
    FOUR_STEPS(12)
#endif
    UNROLL for (uint r = 0; r < ROWS; r++) {
        uint i = start + own + TILE * r;
        if (i >= m) continue;
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            if (start + j < last) nxv_store(a, first + j * m + i, cells[r][j]);
        }
    }
    if (own >= WIDTH) return;
    uint blocks = (last + WIDTH - 1) / WIDTH;
    uint at = ((job * blocks + start / WIDTH) * WIDTH + own) * WIDTH;
    [[unroll]] for (uint j = 0; j < WIDTH; j++) nxv_store(ts, at + j, t[j]);
}
