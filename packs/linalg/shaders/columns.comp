#version 450
// Rotates pairs of columns, each of which lies in one piece, until all are orthogonal: with SWEEPS all rounds of a matrix, else
// one round, of which a workgroup has one pair. LANES invocations share a pair. With CELLS, elements of a matrix, it and its rotations
// are in shared memory meanwhile.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint round; uint n; float least; };
layout(set = 0, binding = 0, std430) coherent buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) coherent buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) readonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 3, std430) buffer States { uint states[]; };

#ifdef CELLS
shared WORK cells[CELLS];
shared WORK turns[TURNS];
#define LOAD_A(at) cells[at]
#define LOAD_V(at) turns[at]
#define STORE_A(at, x) cells[at] = x
#define STORE_V(at, x) turns[at] = x
#else
#define LOAD_A(at) nxv_load(a, at)
#define LOAD_V(at) nxv_load(v, at)
#define STORE_A(at, x) nxv_store(a, at, x)
#define STORE_V(at, x) nxv_store(v, at, x)
#endif

shared WORK parts[3][TILE];
shared uint rotated;

// Sums over the lanes of a pair, the same for each of them.
WORK total(uint sum) {
    uint first = gl_LocalInvocationIndex / LANES * LANES;
    WORK all = WORK(0);
    for (uint lane = 0; lane < LANES; lane++) all += parts[sum][first + lane];
    return all;
}

// `first` is where a matrix begins among those that the operands have.
void turn_pair(uint matrix, uint first, uvec2 pair) {
    uint own = gl_LocalInvocationIndex, lane = own % LANES;
    bool is_pair = max(pair.x, pair.y) < n;
    uvec2 at = first * m * n + pair * m;
    WORK top = WORK(0), bottom = WORK(0), off = WORK(0);
    if (is_pair) {
        for (uint i = lane; i < m; i += LANES) {
            WORK x = LOAD_A(at.x + i), y = LOAD_A(at.y + i);
            top += x * x;
            bottom += y * y;
            off += x * y;
        }
    }
    barrier(); // sums of the last pair are read
    parts[0][own] = top;
    parts[1][own] = bottom;
    parts[2][own] = off;
    barrier(); // every part is there
    top = total(0);
    bottom = total(1);
    off = total(2);
    WORK small = WORK(least);
    if (!is_pair || !(min(top, bottom) > small * small * nxv_load(norms, matrix))) return;
    if (!(abs(off) > WORK(4) * small * sqrt(top) * sqrt(bottom))) return;
    if (lane == 0) rotated = 1;
    Rotation turn = rotation(top, bottom, off);
    for (uint i = lane; i < m; i += LANES) {
        WORK x = LOAD_A(at.x + i), y = LOAD_A(at.y + i);
        STORE_A(at.x + i, x * turn.c - y * turn.s);
        STORE_A(at.y + i, x * turn.s + y * turn.c);
    }
    at = first * n * n + pair * n;
    for (uint i = lane; i < n; i += LANES) {
        WORK x = LOAD_V(at.x + i), y = LOAD_V(at.y + i);
        STORE_V(at.x + i, x * turn.c - y * turn.s);
        STORE_V(at.y + i, x * turn.s + y * turn.c);
    }
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint half_count = (n + 1) / 2;
    uint own = gl_LocalInvocationIndex;
#ifdef SWEEPS
    bool defined = is_finite(nxv_load(norms, job));
#ifdef CELLS
    const uint first = 0;
    for (uint i = own; i < m * n; i += TILE) cells[i] = nxv_load(a, job * m * n + i);
    for (uint i = own; i < n * n; i += TILE) turns[i] = nxv_load(v, job * n * n + i);
#else
    uint first = job;
#endif
    rotated = 1;
    for (uint sweep = 0; sweep < SWEEPS && defined; sweep++) {
        meet(); // what the last sweep did is known
        bool is_done = rotated == 0;
        barrier(); // everybody has read it
        if (is_done) break;
        rotated = 0;
        for (uint turn = 0; turn < 2 * half_count - 1; turn++) {
            for (uint i = 0; i < half_count; i += TILE / LANES) {
                uint index = i + own / LANES;
                turn_pair(job, first, index < half_count ? pair_of(index, turn, half_count) : uvec2(n));
            }
            meet(); // the columns of this round are stored
        }
    }
#ifdef CELLS
    for (uint i = own; i < m * n; i += TILE) nxv_store(a, job * m * n + i, cells[i]);
    for (uint i = own; i < n * n; i += TILE) nxv_store(v, job * n * n + i, turns[i]);
#endif
#else
    uint matrix = job / half_count;
    uint sweep = round / (2 * half_count - 1), state = matrix * MOST + sweep;
    if (sweep > 0 && nxv_load(states, state - 1) == 0) return;
    rotated = 0;
    turn_pair(matrix, matrix, pair_of(job % half_count, round, half_count));
    barrier(); // whether it rotated is known
    if (own == 0 && rotated == 1) nxv_store(states, state, 1);
#endif
}
