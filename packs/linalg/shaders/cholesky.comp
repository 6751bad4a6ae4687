#version 450
// Factors a block on the diagonal: column after column, each element from the sum over those left of it.
#include "matrix.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint start; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) buffer L { WORK l[]; };

// Rows of the factor; on the diagonal what its root is taken of.
shared WORK rows[SIZE][SIZE + 1];

REAL root(REAL x) { return x < REAL(0) ? not_a_number() : sqrt(x); }

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint size = min(SIZE, n - start);
    uint first = job * n * n + start * (n + 1);
    for (uint at = own; at < size * size; at += TILE) {
        uint i = at / size, j = at % size;
        if (j <= i) rows[i][j] = nxv_load(a, first + i * n + j);
    }
    for (uint j = 0; j < size; j++) {
        barrier(); // columns left of this one are done
        for (uint i = j + own; i < size; i += TILE) {
            SUM sum = SUM(0);
            for (uint k = 0; k < j; k++) sum += TIMES(SUM(rows[i][k]), CONJUGATE(SUM(rows[j][k])));
            rows[i][j] -= WORK(sum);
        }
        barrier(); // what the pivot is the root of is known
        REAL pivot = root(REAL_OF(rows[j][j]));
        if (pivot == REAL(0)) pivot = REAL(TINY);
        for (uint i = j + 1 + own; i < size; i += TILE) rows[i][j] /= pivot;
    }
    barrier(); // all columns are done
    for (uint at = own; at < size * size; at += TILE) {
        uint i = at / size, j = at % size;
        WORK value = j < i ? rows[i][j] : j == i ? OF_REAL(root(REAL_OF(rows[i][i]))) : WORK(0);
        nxv_store(l, first + i * n + j, value);
    }
}
