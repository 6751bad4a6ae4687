#version 450
// Factors a whole matrix of at most SIZE rows, with pivots, in shared memory. Products and differences are rounded one by one.
#include "matrix.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint start; };
layout(set = 0, binding = 0, std430) coherent buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) coherent buffer Rows { uint row_of[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Pivots { uint pivots[]; };
layout(set = 0, binding = 3, std430) readonly buffer From { WORK from[]; };

shared WORK cells[SIZE][SIZE + 1];
#define LOAD(i, j) cells[i][j]
#define STORE(i, j, value) cells[i][j] = value

shared REAL best[TILE];
shared uint place[TILE];

// The row of the largest element of column k from row k on, the first of equals. NaN is no pivot.
uint pivot_of(uint first, uint k) {
    uint own = gl_LocalInvocationIndex;
    best[own] = REAL(-2);
    place[own] = n;
    for (uint i = k + own; i < n; i += TILE) {
        WORK x = LOAD(i, k);
        REAL key = IS_NAN(x) ? REAL(-1) : MAGNITUDE(x);
        if (key > best[own]) {
            best[own] = key;
            place[own] = i;
        }
    }
    barrier(); // everybody has a candidate
    for (uint apart = TILE / 2; apart > 0; apart /= 2) {
        if (own < apart) {
            uint other = own + apart;
            if (best[other] > best[own] || (best[other] == best[own] && place[other] < place[own])) {
                best[own] = best[other];
                place[own] = place[other];
            }
        }
        barrier(); // half of them are left
    }
    return place[0];
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint first = job * n * n;
    uint end = n;
    for (uint at = own; at < n * n; at += TILE) cells[at / n][at % n] = nxv_load(from, first + at);
    if (start == 0) {
        for (uint i = own; i < n; i += TILE) nxv_store(row_of, job * n + i, i);
    }
    meet(); // the matrix and the order of its rows are there
    for (uint k = start; k < end; k++) {
        uint pivot = pivot_of(first, k);
        if (pivot != k) {
            for (uint j = start + own; j < end; j += TILE) {
                WORK x = LOAD(k, j);
                STORE(k, j, LOAD(pivot, j));
                STORE(pivot, j, x);
            }
        }
        if (own == 0) {
            nxv_store(pivots, job * n + k, pivot);
            uint row = nxv_load(row_of, job * n + k);
            nxv_store(row_of, job * n + k, nxv_load(row_of, job * n + pivot));
            nxv_store(row_of, job * n + pivot, row);
        }
        meet(); // the pivot is in its row
        WORK diagonal = LOAD(k, k);
        for (uint i = k + 1 + own; i < n; i += TILE) {
            WORK factor = LOAD(i, k);
            if (diagonal != WORK(0)) factor = OVER(factor, diagonal);
            STORE(i, k, factor);
            for (uint j = k + 1; j < end; j++) {
                WORK product = ROUNDED_PRODUCT(factor, LOAD(k, j));
                precise WORK rest = LOAD(i, j) - product;
                STORE(i, j, rest);
            }
        }
        meet(); // the block is up to date
    }
    for (uint at = own; at < n * n; at += TILE) nxv_store(a, first + at, cells[at / n][at % n]);
}
