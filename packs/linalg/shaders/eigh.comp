#version 450
// Eigenvalues and eigenvectors of a symmetric or Hermitian matrix in shared memory, by a workgroup. `v` holds the rotations meanwhile.
// A matrix whose squares would not be numbers is multiplied with a power of two.
#include "matrix.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; float least; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) coherent buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Values { WORK values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Vectors { WORK vectors[]; };

#include "rounds.glsl"
#include "powers.glsl"

shared REAL parts[TILE];
shared uint largest;

void turn_vectors(uint first) {
    uint half_count = (n + 1) / 2;
    for (uint at = gl_LocalInvocationIndex; at < half_count * n; at += TILE) {
        Rotation turn = turns[at / n];
        if (turn.s == WORK(0)) continue;
        uvec2 own = first + pairs[at / n] * n + at % n;
        WORK x = nxv_load(v, own.x), y = nxv_load(v, own.y);
        nxv_store(v, own.x, x * turn.c - TIMES(y, CONJUGATE(turn.s)));
        nxv_store(v, own.y, TIMES(x, turn.s) + y * turn.c);
    }
}

REAL sum_of_parts() {
    REAL sum = REAL(0);
    for (uint i = 0; i < TILE; i++) sum += parts[i];
    return sum;
}

// Makes the largest magnitude about 1; gives what the matrix is multiplied with.
REAL scale(uint even) {
    uint own = gl_LocalInvocationIndex;
    REAL most = REAL(0), part = REAL(0);
    for (uint at = own; at < even * even; at += TILE) most = max(most, extent_of(cells[at / even][at % even]));
    atomicMax(largest, first_bits(most));
    barrier(); // the largest is known, and parts are read
    REAL power = power_for(largest);
    for (uint at = own; at < even * even; at += TILE) {
        cells[at / even][at % even] *= power;
        part += SQUARE(cells[at / even][at % even]);
    }
    parts[own] = part;
    barrier(); // matrix and parts are there
    return power;
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint first = job * n * n;
    REAL part = REAL(0);
    uint even = n + n % 2;
    for (uint at = own; at < even * even; at += TILE) {
        uint i = at / even, j = at % even;
        cells[i][j] = WORK(0);
        if (max(i, j) >= n) continue;
        WORK x = nxv_load(a, first + max(i, j) * n + min(i, j));
        if (i == j) x = OF_REAL(REAL_OF(x));
        if (i < j) x = CONJUGATE(x);
        cells[i][j] = x;
        part += SQUARE(x);
        nxv_store(v, first + i * n + j, i == j ? ONE : WORK(0));
    }
    parts[own] = part;
    rotated = 1;
    if (own == 0) largest = 0;
    meet(); // matrix and parts are there
    REAL norm = sum_of_parts(), power = REAL(1);
    if (!has_squares(norm)) {
        power = scale(even);
        norm = sum_of_parts();
    }
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
            turn_pairs(round, REAL(least) * norm);
            meet(); // rotations are known, vectors of the last round stored
            turn_blocks();
            turn_vectors(first);
            meet(); // the matrix is up to date
        }
    }
    for (uint i = own; i < n; i += TILE) {
        uint place = 0;
        KEY key = KEY(abs(REAL_OF(cells[i][i])));
        for (uint j = 0; j < n; j++) {
            KEY other = KEY(abs(REAL_OF(cells[j][j])));
            if (other > key || (other == key && j < i)) place++;
        }
        if (!defined) place = i;
        nxv_store(values, job * n + place, defined ? cells[i][i] / power : WORK(not_a_number()));
        WORK turn = n > UNSIGNED ? TURN_OF(nxv_load(v, first + i * n)) : ONE;
        for (uint j = 0; j < n; j++) {
            WORK x = nxv_load(v, first + i * n + j);
            nxv_store(vectors, first + j * n + place, !defined ? WORK(not_a_number()) : CONJUGATE(TIMES(x, turn)));
        }
    }
}
