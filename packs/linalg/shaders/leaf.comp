#version 450
// The first systems that tridiagonal matrices are divided into (Cuppen 1981), a workgroup to one, by rotations in shared memory:
// eigenvalues in ascending order, and eigenvectors as rows. Rows that stand for nothing have eigenvalues beyond all others.
#include "matrix.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint rows; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) buffer Lists { WORK lists[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { WORK to[]; };

#include "rounds.glsl"

shared WORK vectors[SIZE][SIZE];
shared WORK parts[TILE];

WORK beside(uint list, uint at) {
    return at + 1 < rows ? nxv_load(lists, BESIDE * total_rows + list + at) : WORK(0);
}

// More than the magnitude of any eigenvalue (Gershgorin 1931).
WORK beyond(uint list) {
    WORK diagonal = WORK(0), off = WORK(0);
    for (uint i = gl_LocalInvocationIndex; i < rows; i += TILE) {
        diagonal = max(diagonal, abs(nxv_load(lists, DIAGONAL * total_rows + list + i)));
        off = max(off, abs(beside(list, i)));
    }
    parts[gl_LocalInvocationIndex] = diagonal + WORK(2) * off;
    barrier(); // every part is there
    WORK sum = parts[0];
    for (uint i = 1; i < TILE; i++) sum = max(sum, parts[i]);
    return sum == WORK(0) ? WORK(1) : WORK(2) * sum;
}

void turn_vectors() {
    uint half_count = (n + 1) / 2;
    for (uint at = gl_LocalInvocationIndex; at < half_count * n; at += TILE) {
        Rotation turn = turns[at / n];
        if (turn.s == WORK(0)) continue;
        uvec2 pair = pairs[at / n];
        WORK x = vectors[pair.x][at % n], y = vectors[pair.y][at % n];
        vectors[pair.x][at % n] = x * turn.c - y * turn.s;
        vectors[pair.y][at % n] = x * turn.s + y * turn.c;
    }
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint list = job * n / padded * padded, start = job * n - list;
    WORK most = beyond(list);
    for (uint at = own; at < SIZE * SIZE; at += TILE) {
        uint i = at / SIZE, j = at % SIZE, row = start + i;
        vectors[i][j] = i == j ? WORK(1) : WORK(0);
        WORK x = WORK(0);
        if (i == j && i < n) {
            x = row < rows ? nxv_load(lists, DIAGONAL * total_rows + list + row)
                           : most + most * WORK(row - rows) / WORK(padded);
            if (i == 0 && row > 0) x -= abs(beside(list, row - 1));
            if (i + 1 == n) x -= abs(beside(list, row));
        }
        if (max(i, j) < n && i + 1 == j) x = beside(list, row);
        if (max(i, j) < n && j + 1 == i) x = beside(list, row - 1);
        cells[i][j] = x;
    }
    rotated = 1;
    barrier(); // the matrix is there
    for (uint sweep = 0; sweep < SWEEPS; sweep++) {
        bool is_done = rotated == 0;
        barrier(); // everybody has read it
        if (is_done) break;
        rotated = 0;
        barrier(); // it is 0 before it is set
        for (uint round = 0; round < 2 * ((n + 1) / 2) - 1; round++) {
            turn_pairs(round, EPSILON * most);
            barrier(); // rotations are known
            turn_blocks();
            turn_vectors();
            barrier(); // the matrix is up to date
        }
    }
    for (uint at = own; at < n * n; at += TILE) {
        uint i = at / n, place = 0;
        WORK value = cells[i][i];
        for (uint j = 0; j < n; j++) {
            WORK other = cells[j][j];
            if (other < value || (other == value && j < i)) place++;
        }
        if (at % n == 0) nxv_store(lists, WEIGHTS * total_rows + job * n + place, value);
        nxv_store(to, (job * n + place) * n + at % n, vectors[i][at % n]);
    }
}
