#version 450
// The last steps of Householder's reduction of symmetric matrices to tridiagonal ones, a workgroup to a matrix: its last SIZE rows
// and columns, or all of them, are in registers. An invocation has those that are DOWN and ACROSS apart from its own.
#include "matrix.glsl"
#include "sums.glsl"
#include "lists.glsl"
#include "reflector.glsl"

const uint ROWS = SIZE / DOWN, COLUMNS = SIZE / ACROSS;

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint first; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) buffer Lists { WORK lists[]; };

shared WORK line[SIZE];      // the row that is reflected
shared WORK reflector[SIZE]; // vectors of the reflection, of which 1 - v wᵀ - w vᵀ is taken from both sides
shared WORK other[SIZE];
shared WORK products[SIZE][ACROSS + 1];

WORK cells[ROWS][COLUMNS];

// What the reflection leaves to do.
void update(uvec2 own) {
    UNROLL for (uint i = 0; i < ROWS; i++) {
        WORK row_reflector = reflector[own.x + i * DOWN], row_other = other[own.x + i * DOWN];
        UNROLL for (uint j = 0; j < COLUMNS; j++) {
            uint column = own.y + j * ACROSS;
            cells[i][j] -= row_reflector * other[column] + row_other * reflector[column];
        }
    }
}

// The second vector from the products of the first one and the matrix.
void finish(WORK tau) {
    WORK part = WORK(0);
    for (uint i = gl_LocalInvocationIndex; i < SIZE; i += TILE) part += reflector[i] * other[i];
    WORK share = tau * tau * WORK(0.5) * total(part);
    for (uint i = gl_LocalInvocationIndex; i < SIZE; i += TILE) other[i] = tau * other[i] - share * reflector[i];
    barrier(); // both vectors are there
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint index = gl_LocalInvocationIndex, size = n - first, at = job * n * n, list = job * padded;
    uvec2 own = uvec2(index / ACROSS, index % ACROSS);
    UNROLL for (uint i = 0; i < ROWS; i++) {
        UNROLL for (uint j = 0; j < COLUMNS; j++) {
            uvec2 place = own + uvec2(i * DOWN, j * ACROSS);
            WORK x = nxv_load(a, at + (first + min(place.x, size - 1)) * n + first + min(place.y, size - 1));
            cells[i][j] = max(place.x, place.y) < size ? x : WORK(0);
        }
    }
    if (first > 0) {
        for (uint i = index; i < SIZE; i += TILE) {
            bool is_in = i < size;
            uint k = first + min(i, size - 1);
            reflector[i] = is_in ? nxv_load(v, at + (first - 1) * n + k) : WORK(0);
            other[i] = is_in ? nxv_load(lists, list + (PRODUCTS + (first + 1) % 2) * total_rows + k) : WORK(0);
        }
        finish(nxv_load(lists, list + TAUS * total_rows + first - 1));
        update(own);
    }
    for (uint step = 0; step < size; step++) {
        UNROLL for (uint i = 0; i < ROWS; i++) {
            if (own.x + i * DOWN != step) continue;
            UNROLL for (uint j = 0; j < COLUMNS; j++) line[own.y + j * ACROSS] = cells[i][j];
        }
        barrier(); // the row is there
        WORK part = WORK(0);
        for (uint i = index; i < SIZE; i += TILE) part += i > step + 1 ? line[i] * line[i] : WORK(0);
        Reflector turn = reflector_of(step + 1 < SIZE ? line[min(step + 1, SIZE - 1)] : WORK(0), total(part));
        if (index == 0) {
            nxv_store(lists, list + DIAGONAL * total_rows + first + step, line[step]);
            nxv_store(lists, list + BESIDE * total_rows + first + step, turn.to);
            nxv_store(lists, list + TAUS * total_rows + first + step, turn.tau);
        }
        for (uint i = index; i < SIZE; i += TILE) {
            WORK y = i <= step || i >= size ? WORK(0) : i == step + 1 ? WORK(1) : line[i] * turn.factor;
            reflector[i] = y;
            if (i > step && i < size) nxv_store(v, at + (first + step) * n + first + i, y);
        }
        barrier(); // the reflector is there
        if (turn.tau == WORK(0)) continue;
        UNROLL for (uint i = 0; i < ROWS; i++) {
            WORK sum = WORK(0);
            UNROLL for (uint j = 0; j < COLUMNS; j++) sum += cells[i][j] * reflector[own.y + j * ACROSS];
            products[own.x + i * DOWN][own.y] = sum;
        }
        barrier(); // products of parts of rows are there
        for (uint i = index; i < SIZE; i += TILE) {
            WORK sum = WORK(0);
            for (uint j = 0; j < ACROSS; j++) sum += products[i][j];
            other[i] = i > step ? sum : WORK(0);
        }
        finish(turn.tau);
        update(own);
    }
}
