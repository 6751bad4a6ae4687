#version 450
// Householder's reflections of a block of columns, each of which lies in one piece: r stays above the diagonal and on it, the
// reflectors go below. Their first element is 1, and their factor goes to `taus`, 0 where there is nothing to reflect.
#include "matrix.glsl"

#if TILE < 32
#define LANES TILE
#else
#define LANES 32
#endif

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint start; uint n; uint last; float eps; };
layout(set = 0, binding = 0, std430) coherent buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Taus { WORK taus[]; };

shared WORK parts[TILE];

// The sum of what the first of `count` invocations have of it, and those that are `count` apart.
WORK total(WORK part, uint count) {
    uint own = gl_LocalInvocationIndex;
    parts[own] = part;
    barrier(); // every part is there
    for (uint apart = count / 2; apart > 0; apart /= 2) {
        if (own % count < apart) parts[own] += parts[own + apart];
        barrier(); // half of the parts are left
    }
    WORK sum = parts[own / count * count];
    barrier(); // the sum is read before the parts change
    return sum;
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint first = job * m * n;
    uint end = min(start + BLOCK, last);
    for (uint k = start; k < end; k++) {
        uint column = first + k * m;
        WORK part = WORK(0);
        for (uint i = k + 1 + own; i < m; i += TILE) {
            WORK x = nxv_load(a, column + i);
            part += x * x;
        }
        WORK tail = total(part, TILE);
        WORK x = nxv_load(a, column + k);
        WORK norm = sqrt(x * x + tail);
        WORK to = tail < WORK(eps) && x < WORK(0) ? -norm : norm;
        WORK head = x * to > WORK(0) ? -tail / (x + to) : x - to;
        bool is_done = tail == WORK(0) || head == WORK(0);
        WORK tau = is_done ? WORK(0) : WORK(2) * head * head / (tail + head * head);
        meet(); // the diagonal is read before it changes
        if (own == 0) {
            nxv_store(taus, job * last + k, tau);
            if (!is_done) nxv_store(a, column + k, to);
        }
        if (is_done) continue;
        for (uint i = k + 1 + own; i < m; i += TILE) nxv_store(a, column + i, nxv_load(a, column + i) / head);
        meet(); // the reflector is there
        for (uint j = k + 1; j < end; j += TILE / LANES) {
            uint other = j + own / LANES;
            uint at = first + other * m;
            WORK below = WORK(0);
            if (other < end) {
                for (uint i = k + 1 + own % LANES; i < m; i += LANES) below += nxv_load(a, column + i) * nxv_load(a, at + i);
            }
            below = total(below, LANES);
            if (other < end) {
                WORK share = tau * (nxv_load(a, at + k) + below);
                for (uint i = k + 1 + own % LANES; i < m; i += LANES) {
                    nxv_store(a, at + i, nxv_load(a, at + i) - share * nxv_load(a, column + i));
                }
                // The other lanes have read this element before they came to the barrier of the next sum.
                parts[own] = share;
            }
            barrier(); // every lane has read the element on the diagonal's row
            if (other < end && own % LANES == 0) nxv_store(a, at + k, nxv_load(a, at + k) - parts[own]);
            barrier(); // it is stored before parts change
        }
        meet(); // the block is up to date
    }
}
