#version 450
// Eigenvectors of symmetric or Hermitian matrices, from those of the tridiagonal ones that reflections made of them: a workgroup
// takes four of them through all reflections, from the last to the first, WIDTH at once where that is defined. They become
// columns, with AS_ROWS rows, in descending order of the eigenvalues' magnitude, and their first component is real and not
// negative.
#if defined(WIDTH) && SUBGROUP > 1
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "matrix.glsl"
#include "rotation.glsl"
#define FOUR
#include "sums.glsl"
#ifdef WIDTH
#include "totals.glsl"
#endif
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint tiles; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer From { REAL from[]; };
layout(set = 0, binding = 1, std430) readonly buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) readonly buffer Lists { REAL lists[]; };
layout(set = 0, binding = 3, std430) readonly buffer Scales { REAL scales[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Values { WORK values[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Vectors { WORK vectors[]; };

#ifdef WORK_IS_COMPLEX
layout(set = 0, binding = 6, std430) readonly buffer Columns { WORK columns[]; };
#endif

shared WORK turns[4];

WORK4 cells[ITEMS];

#ifdef WIDTH
layout(set = 0, binding = 6, std430) readonly buffer Ts { WORK ts[]; };

shared WORK products[COUNT];
shared WORK4 shares[WIDTH];

// What the reflectors of the block that begins with number `start` have in the elements `j` of an invocation.
#define REFLECTOR(k) nxv_load(v, (matrix * n + min(start + k, n - 1)) * n + min(j, n - 1))

void reflect(uint matrix, uint block, uint blocks) {
    uint own = gl_LocalInvocationIndex, start = block * WIDTH;
    // Of the triangle in time.
    WORK row[WIDTH];
    uint at = ((matrix * blocks + block) * WIDTH + min(own / 4, WIDTH - 1)) * WIDTH;
    [[unroll]] for (uint l = 0; l < WIDTH; l++) row[l] = nxv_load(ts, at + l);
    WORK sums[COUNT];
    [[unroll]] for (uint i = 0; i < COUNT; i++) sums[i] = WORK(0);
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        // A reflector has nothing up to its own number, and cells nothing beyond the last row.
        if ((i + 1) * TILE <= start) continue;
        uint j = own + i * TILE;
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            WORK4 product = cells[i] * REFLECTOR(k);
            [[unroll]] for (uint column = 0; column < 4; column++) sums[k * 4 + column] += product[column];
        }
    }
    add_up(sums);
    barrier(); // every subgroup's sums are there
    for (uint place = own; place < COUNT; place += TILE) products[place] = total(place);
    barrier(); // the products of reflectors and vectors are there
    for (uint place = own; place < COUNT; place += TILE) {
        if (place != own) {
            at = ((matrix * blocks + block) * WIDTH + place / 4) * WIDTH;
            [[unroll]] for (uint l = 0; l < WIDTH; l++) row[l] = nxv_load(ts, at + l);
        }
        WORK sum = WORK(0);
        [[unroll]] for (uint l = 0; l < WIDTH; l++) sum += row[l] * products[l * 4 + place % 4];
        shares[place / 4][place % 4] = sum;
    }
    barrier(); // what is taken of each reflector is known
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        if ((i + 1) * TILE <= start) continue;
        uint j = own + i * TILE;
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            WORK x = REFLECTOR(k);
            cells[i] -= shares[k] * (j < n ? x : WORK(0));
        }
    }
}
#endif

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, matrix = job / tiles, first = job % tiles * 4, count = n - first;
    uint list = matrix * padded;
    UNROLL for (uint i = 0; i < ITEMS; i++) {
        uint j = own + i * TILE, at = (list + first) * padded + j, rows = j < n ? count : 0;
        REAL4 four = REAL4(
            rows > 0 ? nxv_load(from, at) : REAL(0),
            rows > 1 ? nxv_load(from, at + padded) : REAL(0),
            rows > 2 ? nxv_load(from, at + 2 * padded) : REAL(0),
            rows > 3 ? nxv_load(from, at + 3 * padded) : REAL(0));
#ifdef WORK_IS_COMPLEX
        WORK turn = j < n ? nxv_load(columns, 2 * total_rows + list + j) : WORK(0);
        cells[i] = WORK4(turn * four.x, turn * four.y, turn * four.z, turn * four.w);
#else
        cells[i] = four;
#endif
    }
#ifdef WIDTH
    uint blocks = (n + WIDTH - 1) / WIDTH;
    for (uint block = blocks; block-- > 0;) reflect(matrix, block, blocks);
#else
    WORK reflector[ITEMS];
    // The last two steps have nothing to reflect.
    for (uint k = n - 2; k-- > 0;) {
        REAL tau = nxv_load(lists, TAUS * total_rows + list + k);
        if (tau == REAL(0)) continue;
        WORK4 sums = WORK4(0);
        UNROLL for (uint i = 0; i < ITEMS; i++) {
            uint j = own + i * TILE;
            reflector[i] = j < n ? nxv_load(v, (matrix * n + k) * n + j) : WORK(0);
            sums += TIMES(CONJUGATE(reflector[i]), cells[i]);
        }
        sums = tau * total(sums);
        UNROLL for (uint i = 0; i < ITEMS; i++) cells[i] -= TIMES(reflector[i], sums);
    }
#endif
    if (own == 0) [[unroll]] for (uint row = 0; row < 4; row++) turns[row] = TURN_OF(cells[0][row]);
    KEY keys[4];
    [[unroll]] for (uint row = 0; row < 4; row++) {
        keys[row] = row < count ? KEY(abs(nxv_load(lists, DIAGONAL * total_rows + list + first + row))) : KEY(0);
    }
    REAL4 places = REAL4(0);
    for (uint i = own; i < n; i += TILE) {
        KEY other = KEY(abs(nxv_load(lists, DIAGONAL * total_rows + list + i)));
        [[unroll]] for (uint row = 0; row < 4; row++) {
            if (other > keys[row] || (other == keys[row] && i < first + row)) places[row] += REAL(1);
        }
    }
    places = total(places);
    REAL scale = nxv_load(scales, matrix);
    bool defined = is_finite(scale);
    [[unroll]] for (uint row = 0; row < 4; row++) {
        if (row >= count) continue;
        uint place = uint(places[row]);
        if (own == 0) {
            nxv_store(values, matrix * n + place, OF_REAL(nxv_load(lists, DIAGONAL * total_rows + list + first + row) * scale));
        }
        UNROLL for (uint i = 0; i < ITEMS; i++) {
            uint j = own + i * TILE;
            if (j >= n) continue;
            WORK x = TIMES(turns[row], cells[i][row]);
#ifdef AS_ROWS
            uint at = (matrix * n + place) * n + j;
#else
            uint at = (matrix * n + j) * n + place;
#endif
            nxv_store(vectors, at, defined ? x : WORK(not_a_number()));
        }
    }
}
