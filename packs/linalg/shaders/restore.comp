#version 450
// Eigenvectors of symmetric matrices, from those of the tridiagonal ones that reflections made of them: a workgroup takes ROWS of
// them through all reflections, from the last to the first. They become columns, with AS_ROWS rows, in descending order of the
// eigenvalues' magnitude, and their first component is not negative.
#include "matrix.glsl"
#include "rotation.glsl"
#include "sums.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint tiles; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) readonly buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) readonly buffer Lists { WORK lists[]; };
layout(set = 0, binding = 3, std430) readonly buffer Scales { WORK scales[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Values { WORK values[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Vectors { WORK vectors[]; };

shared bool is_turned[ROWS];

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, matrix = job / tiles, first = job % tiles * ROWS;
    uint list = matrix * padded;
    WORK cells[ROWS][ITEMS], reflector[ITEMS], sums[ROWS];
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = own + i * TILE;
        UNROLL for (uint row = 0; row < ROWS; row++) {
            cells[row][i] = j < n && first + row < n ? nxv_load(from, (list + first + row) * padded + j) : WORK(0);
        }
        reflector[i] = WORK(0);
    }
    // The last two steps have nothing to reflect.
    for (uint k = n - 2; k-- > 0;) {
        WORK tau = nxv_load(lists, TAUS * total_rows + list + k);
        if (tau == WORK(0)) continue;
        [[unroll]] for (uint row = 0; row < ROWS; row++) sums[row] = WORK(0);
        UNROLL for (uint i = 0; i < ITEMS; i++) {
            uint j = own + i * TILE;
            reflector[i] = j < n ? nxv_load(v, (matrix * n + k) * n + j) : WORK(0);
            UNROLL for (uint row = 0; row < ROWS; row++) sums[row] += cells[row][i] * reflector[i];
        }
        totals(sums);
        UNROLL for (uint row = 0; row < ROWS; row++) {
            WORK share = tau * sums[row];
            UNROLL for (uint i = 0; i < ITEMS; i++) cells[row][i] -= share * reflector[i];
        }
    }
    KEY keys[ROWS];
    UNROLL for (uint row = 0; row < ROWS; row++) {
        if (own == 0) is_turned[row] = cells[row][0] < WORK(0);
        keys[row] = first + row < n ? KEY(abs(nxv_load(lists, DIAGONAL * total_rows + list + first + row))) : KEY(0);
        sums[row] = WORK(0);
    }
    for (uint i = own; i < n; i += TILE) {
        KEY other = KEY(abs(nxv_load(lists, DIAGONAL * total_rows + list + i)));
        UNROLL for (uint row = 0; row < ROWS; row++) {
            if (other > keys[row] || (other == keys[row] && i < first + row)) sums[row] += WORK(1);
        }
    }
    totals(sums);
    WORK scale = nxv_load(scales, matrix);
    bool defined = is_finite(scale);
    UNROLL for (uint row = 0; row < ROWS; row++) {
        if (first + row >= n) continue;
        uint place = uint(sums[row]);
        if (own == 0) {
            nxv_store(values, matrix * n + place, nxv_load(lists, DIAGONAL * total_rows + list + first + row) * scale);
        }
        UNROLL for (uint i = 0; i < ITEMS; i++) {
            uint j = own + i * TILE;
            if (j >= n) continue;
            WORK x = is_turned[row] ? -cells[row][i] : cells[row][i];
#ifdef AS_ROWS
            uint at = (matrix * n + place) * n + j;
#else
            uint at = (matrix * n + j) * n + place;
#endif
            nxv_store(vectors, at, defined ? x : not_a_number());
        }
    }
}
