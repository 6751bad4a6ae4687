#version 450
// Solves with the triangle of a block on the diagonal, for right sides side by side, of which a workgroup has TILE. UPPER goes
// upwards, UNIT has ones on the diagonal, TINY stands for a 0 there, AFTER has the right sides behind the block. With ORDER the
// rows of the block are scattered, and the solution goes to another matrix. With CONJUGATED the triangle is that of conjugates.
#include "matrix.glsl"

// SMALL unknowns an invocation keeps in registers.
const uint SMALLS = SIDE / SMALL;

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
    uint n; uint jobs; uint start; uint count; uint tiles;
    uint a_row; uint a_column; uint a_batch;
    uint x_row; uint x_column; uint x_batch;
};
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
#ifdef ORDER
layout(set = 0, binding = 1, std430) writeonly buffer X { WORK x[]; };
layout(set = 0, binding = 2, std430) readonly buffer Order { uint order[]; };
shared uint rows[SIDE];
#else
layout(set = 0, binding = 1, std430) buffer X { WORK x[]; };
#endif

// The triangle, by columns of squares of SMALL rows and columns, as a lower one.
shared PART4 block[SMALLS * (SMALLS + 1) / 2][SMALL][SMALL / 4];
shared PART inverses[SIDE];
shared PART sides[SIDE][TILE + 1];

#ifdef WORK_IS_COMPLEX
#define CORRECTED(x, quotient, y, inverse) (quotient + times(x - times(quotient, y), inverse))
#else
#define CORRECTED(x, quotient, y, inverse) fma(fma(-quotient, y, x), inverse, quotient)
#endif

uint size;

// The row of the matrix that has unknown k of the block.
uint row_of(uint k) {
#if defined(ORDER)
    return rows[k];
#elif defined(UPPER)
    return start + size - 1 - k;
#else
    return start + k;
#endif
}

uint column_of(uint k) {
#ifdef UPPER
    return start + size - 1 - k;
#else
    return start + k;
#endif
}

void load_block(uint batch) {
    uint own = gl_LocalInvocationIndex;
    UNROLL for (uint step = 0; step < SIDE * SIDE; step += THREADS) {
        uint at = step + own;
        uvec2 place = a_column == 1 ? uvec2(at / SIDE, at % SIDE) : uvec2(at % SIDE, at / SIDE);
        uint i = place.x, j = place.y;
        uvec2 square = place / SMALL;
        PART value = PART(0);
        if (i == j) value = PART(ONE);
        uvec2 inside = min(place, uvec2(size - 1));
        WORK element = nxv_load(a, batch * a_batch + row_of(inside.x) * a_row + column_of(inside.y) * a_column);
        #ifdef CONJUGATED
        element = CONJUGATE(element);
#endif
        if (j <= i && i < size) value = PART(element);
#ifndef UNIT
        if (i == j) {
            nxv_fault(value == PART(0));
#ifdef TINY
            if (value == PART(0)) value = PART(OF_REAL(REAL(TINY)));
#endif
            inverses[i] = OVER(PART(ONE), value);
        }
#endif
        if (square.y > square.x) continue;
        block[square.x * (square.x + 1) / 2 + square.y][j % SMALL][i % SMALL / 4][i % 4] = value;
    }
}

// The place of right sides that an invocation moves in a step: unknown and side.
uvec2 place_of(uint step) {
    uint at = step + gl_LocalInvocationIndex;
    return x_row == 1 ? uvec2(at % SIDE, at / SIDE) : uvec2(at / TILE, at % TILE);
}

// Unknowns of one right side from square p on the diagonal, in which that is up to date, both in `sides`.
void solve(uint p) {
    uint own = gl_LocalInvocationIndex;
    PART4 x[SMALL / 4];
    [[unroll]] for (uint i = 0; i < SMALL; i++) x[i / 4][i % 4] = sides[SMALL * p + i][own];
    uint square = p * (p + 1) / 2 + p;
    [[unroll]] for (uint k = 0; k < SMALL; k++) {
        PART known = x[k / 4][k % 4];
#ifndef UNIT
        PART inverse = inverses[SMALL * p + k];
        PART quotient = TIMES(known, inverse);
#ifdef AFTER
        known = quotient;
#else
        // What the product with the inverse lacks of the quotient.
        known = CORRECTED(known, quotient, block[square][k][k / 4][k % 4], inverse);
        if (IS_NAN(known)) known = quotient;
#endif
#endif
        sides[SMALL * p + k][own] = known;
        [[unroll]] for (uint i = k / 4; i < SMALL / 4; i++) x[i] -= TIMES(known, block[square][k][i]);
    }
}

// Takes what the unknowns of square p make of the right sides below, of which an invocation has four rows at a time.
void lift(uint p) {
    uint first = SMALL / 4 * (p + 1);
    for (uint at = gl_LocalInvocationIndex + first * TILE; at < SIDE / 4 * TILE; at += THREADS) {
        uint four = at / TILE, side = at % TILE;
        uint down = 4 * four / SMALL, square = down * (down + 1) / 2 + p;
        PART4 x;
        [[unroll]] for (uint i = 0; i < 4; i++) x[i] = sides[4 * four + i][side];
        [[unroll]] for (uint k = 0; k < SMALL; k++) x -= TIMES(sides[SMALL * p + k][side], block[square][k][four % (SMALL / 4)]);
        [[unroll]] for (uint i = 0; i < 4; i++) sides[4 * four + i][side] = x[i];
    }
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / tiles;
    uint own = gl_LocalInvocationIndex;
    uint first = job % tiles * TILE;
#ifdef AFTER
    first += min(start + SIDE, n);
#endif
    size = min(SIDE, n - start);
#ifdef ORDER
    for (uint k = own; k < size; k += THREADS) rows[k] = nxv_load(order, batch * n + start + k);
    barrier(); // the rows are known
#endif
    if (first >= count) return;
    // All loads are on their way before the first one is waited for.
    PART held[SIDE * TILE / THREADS];
    UNROLL for (uint step = 0; step < SIDE * TILE; step += THREADS) {
        uvec2 place = place_of(step);
        place = min(place, uvec2(size, count - first) - 1);
#ifdef ORDER
        uint at = batch * a_batch + row_of(place.x) * a_row + (first + place.y) * a_column;
        held[step / THREADS] = PART(nxv_load(a, at));
#else
        uint at = batch * x_batch + row_of(place.x) * x_row + (first + place.y) * x_column;
        held[step / THREADS] = PART(nxv_load(x, at));
#endif
    }
    load_block(batch);
    UNROLL for (uint step = 0; step < SIDE * TILE; step += THREADS) {
        uvec2 place = place_of(step);
        sides[place.x][place.y] = held[step / THREADS];
    }
    barrier(); // the block and its right sides are there
    for (uint p = 0; SMALL * p < size; p++) {
        if (own < TILE) solve(p);
        barrier(); // the unknowns of the square are there
        if (SMALL * (p + 1) < size) lift(p);
        barrier(); // the next square's right sides are up to date
    }
    UNROLL for (uint step = 0; step < SIDE * TILE; step += THREADS) {
        uvec2 place = place_of(step);
        if (place.x >= size || first + place.y >= count) continue;
        nxv_store(x, batch * x_batch + column_of(place.x) * x_row + (first + place.y) * x_column, WORK(sides[place.x][place.y]));
    }
}
