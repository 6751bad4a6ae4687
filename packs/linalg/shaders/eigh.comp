#version 450
// Eigenvalues and eigenvectors of a symmetric matrix in shared memory, by a workgroup. `v` holds the rotations meanwhile.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; float least; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) coherent buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Values { WORK values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Vectors { WORK vectors[]; };

shared WORK cells[SIZE][SIZE + 1];
shared Rotation turns[SIZE / 2];
shared uvec2 pairs[SIZE / 2];
shared WORK parts[TILE];
shared uint rotated;

void turn_pairs(uint round, WORK least_now) {
    uint half_count = (n + 1) / 2;
    for (uint i = gl_LocalInvocationIndex; i < half_count; i += TILE) {
        uvec2 pair = pair_of(i, round, half_count);
        Rotation turn = NONE;
        if (max(pair.x, pair.y) < n && abs(cells[pair.x][pair.y]) > least_now) {
            turn = rotation(cells[pair.x][pair.x], cells[pair.y][pair.y], cells[pair.x][pair.y]);
            rotated = 1;
        }
        pairs[i] = pair;
        turns[i] = turn;
    }
}

// Rows and columns of the blocks that two pairs of indices have in common.
void turn_blocks() {
    uint half_count = (n + 1) / 2;
    for (uint at = gl_LocalInvocationIndex; at < half_count * half_count; at += TILE) {
        uint row = at / half_count, column = at % half_count;
        Rotation left = turns[row], right = turns[column];
        if (left.s == WORK(0) && right.s == WORK(0)) continue;
        uvec2 p = pairs[row], q = pairs[column];
        bvec2 is_row = lessThan(p, uvec2(n)), is_column = lessThan(q, uvec2(n));
        WORK tl = cells[p.x][q.x];
        WORK tr = is_column.y ? cells[p.x][q.y] : WORK(0);
        WORK bl = is_row.y ? cells[p.y][q.x] : WORK(0);
        WORK br = is_row.y && is_column.y ? cells[p.y][q.y] : WORK(0);
        WORK top_left = tl * left.c - bl * left.s, bottom_left = tl * left.s + bl * left.c;
        WORK top_right = tr * left.c - br * left.s, bottom_right = tr * left.s + br * left.c;
        bool same = row == column;
        cells[p.x][q.x] = same ? tl - left.t * tr : top_left * right.c - top_right * right.s;
        if (is_column.y) cells[p.x][q.y] = same ? WORK(0) : top_left * right.s + top_right * right.c;
        if (is_row.y) cells[p.y][q.x] = same ? WORK(0) : bottom_left * right.c - bottom_right * right.s;
        if (is_row.y && is_column.y) {
            cells[p.y][q.y] = same ? br + left.t * tr : bottom_left * right.s + bottom_right * right.c;
        }
    }
}

void turn_vectors(uint first) {
    uint half_count = (n + 1) / 2;
    for (uint at = gl_LocalInvocationIndex; at < half_count * n; at += TILE) {
        Rotation turn = turns[at / n];
        if (turn.s == WORK(0)) continue;
        uvec2 own = first + pairs[at / n] * n + at % n;
        WORK x = nxv_load(v, own.x), y = nxv_load(v, own.y);
        nxv_store(v, own.x, x * turn.c - y * turn.s);
        nxv_store(v, own.y, x * turn.s + y * turn.c);
    }
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint first = job * n * n;
    WORK part = WORK(0);
    uint even = n + n % 2;
    for (uint at = own; at < even * even; at += TILE) {
        uint i = at / even, j = at % even;
        cells[i][j] = WORK(0);
        if (max(i, j) >= n) continue;
        WORK x = nxv_load(a, first + max(i, j) * n + min(i, j));
        cells[i][j] = x;
        part += x * x;
        nxv_store(v, first + i * n + j, i == j ? WORK(1) : WORK(0));
    }
    parts[own] = part;
    rotated = 1;
    meet(); // matrix and parts are there
    WORK norm = WORK(0);
    for (uint i = 0; i < TILE; i++) norm += parts[i];
    norm = sqrt(norm);
    bool defined = is_finite(norm);
    for (uint sweep = 0; sweep < SWEEPS && defined; sweep++) {
        bool is_done = rotated == 0;
        barrier(); // everybody has read it
        if (is_done) break;
        rotated = 0;
        barrier(); // it is 0 before it is set
        uint rounds = 2 * ((n + 1) / 2) - 1;
        for (uint round = 0; round < rounds; round++) {
            turn_pairs(round, WORK(least) * norm);
            meet(); // rotations are known, vectors of the last round stored
            turn_blocks();
            turn_vectors(first);
            meet(); // the matrix is up to date
        }
    }
    for (uint i = own; i < n; i += TILE) {
        uint place = 0;
        KEY key = KEY(abs(cells[i][i]));
        for (uint j = 0; j < n; j++) {
            KEY other = KEY(abs(cells[j][j]));
            if (other > key || (other == key && j < i)) place++;
        }
        if (!defined) place = i;
        nxv_store(values, job * n + place, defined ? cells[i][i] : not_a_number());
        for (uint j = 0; j < n; j++) {
            nxv_store(vectors, first + j * n + place, defined ? nxv_load(v, first + i * n + j) : not_a_number());
        }
    }
}
