#version 450
// One pass over rows of a transform: transforms of EXTENT elements, COLUMNS of them in a workgroup, in Stockham's order
// (Van Loan 1992, section 1.7). A row is STRIDE columns of EXTENT elements; the first elements of it, so many as are done, and
// those that follow are transformed by earlier passes. Bluestein's convolution (1970) multiplies with a chirp exp(-pi i j^2 / n);
// its transform back is one of numbers whose parts change places.
#include "dtype.glsl"
#include "tensor.glsl"
#include "butterflies.glsl"

layout(local_size_x = THREADS) in;

// Columns of all rows that lie in one block of INNER rows, side by side.
layout(constant_id = 0) const uint SPAN = 1;
layout(constant_id = 1) const uint INNER = 1;
// Elements that are transformed where this pass loads and where it stores.
layout(constant_id = 2) const uint LOADED_DONE = 1;
layout(constant_id = 3) const uint STORED_DONE = 1;
// Powers of roots of unity: where they begin, how many bits of an exponent one table has, and how many tables there are.
layout(constant_id = 4) const uint ROOTS = 0;
layout(constant_id = 5) const uint TWIDDLES = 0;
layout(constant_id = 6) const uint TWIDDLE_BITS = 0;
layout(constant_id = 7) const uint TWIDDLE_TABLES = 0;
// Where the filter begins.
layout(constant_id = 8) const uint FILTER = 0;
#if CHIRPED
layout(constant_id = 9) const uint CHIRPS = 0;
layout(constant_id = 10) const uint CHIRP_BITS = 0;
layout(constant_id = 11) const uint CHIRP_TABLES = 0;
// Bits of twice the length, and 2^(2 BITS) divided by it.
layout(constant_id = 12) const uint BITS = 2;
layout(constant_id = 13) const uint BARRETT = 0;
#endif
const uint STRIDE = SPAN / INNER;

layout(push_constant, std430) uniform Pass {
    REAL scale;
    REAL eps;
    uint count;  // columns
    uint extent; // of the operand's axis
    uint limit;  // elements of it that count
    uint kept;   // extent of the result's axis
    uint offset; // of the operand
    uint whole;  // length of the chirp
};

layout(set = 0, binding = 0, std430) readonly restrict buffer Roots { PAIR roots[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer R { R_STORAGE r[]; };
#ifdef T_STORAGE
layout(set = 0, binding = 2, std430) readonly restrict buffer T { T_STORAGE t[]; };
#endif
#if FILTERED
layout(set = 0, binding = 3, std430) readonly restrict buffer Filter { PAIR filter_of[]; };
#endif

#if STAGED
#if SPLIT
shared REAL staged[STAGED];
#else
shared PAIR staged[STAGED];
#endif
#endif
#if ROOTS_STAGED
shared PAIR staged_roots[EXTENT];
#endif

// A power of the root of EXTENT, of which the second half is the first one negated.
PAIR root(uint exponent) {
#if ROOTS_STAGED
    return staged_roots[exponent];
#elif ROOTS_HALVED
    bool second = exponent >= EXTENT / 2u;
    PAIR root = nxv_load(roots, ROOTS + exponent - (second ? EXTENT / 2u : 0u));
    return second ? -root : root;
#else
    return nxv_load(roots, ROOTS + exponent);
#endif
}

PAIR power(uint first, uint bits, uint tables, uint exponent) {
    PAIR root = nxv_load(roots, first + (exponent & ((1u << bits) - 1u)));
    for (uint table = 1u; table < tables; table++) {
        exponent >>= bits;
        root = product(root, nxv_load(roots, first + (table << bits) + (exponent & ((1u << bits) - 1u))));
    }
    return root;
}

#if CHIRPED
// The square of j modulo twice the length, of BITS bits (Barrett 1986): without integers of 64 bits and their division.
PAIR chirp(uint j) {
    uint high, low, above, below;
    umulExtended(j, j, high, low);
    umulExtended((high << (33u - BITS)) | (low >> (BITS - 1u)), BARRETT, above, below);
    uint rest = low - ((above << (31u - BITS)) | (below >> (BITS + 1u))) * (2u * whole);
    if (rest >= 2u * whole) rest -= 2u * whole;
    if (rest >= 2u * whole) rest -= 2u * whole;
    return power(CHIRPS, CHIRP_BITS, CHIRP_TABLES, rest);
}
#endif

// A column: its place among the rows side by side, and in its row. What is not there is the last one.
struct Column { bool is_there; uint block; uint j; uint row; };

Column column_of(uint column) {
    uint number = nxv_workgroup() * COLUMNS + column;
    bool is_there = number < count;
    number = min(number, count - 1u);
    uint rest = number % SPAN;
    return Column(is_there, number / SPAN, rest / INNER, rest % INNER);
}

#ifdef T_STORAGE
// Loaded in any case, as a compiler waits for a load under a condition before it begins the next one.
PAIR element(Column column, uint index, uint limit) {
    uint own = min(index, limit - 1u);
    PAIR x = LOAD(nxv_load(t, (column.block * extent + own) * INNER + column.row + offset));
    return own == index ? x : PAIR(0);
}
#endif

// Element `index` of what is transformed.
PAIR source(Column column, uint index) {
#if !defined(T_STORAGE)
    uint j = min(index, STRIDE * EXTENT - index);
    PAIR x = j < whole ? chirp(j) * PAIR(1, -1) : PAIR(0);
#elif MIRRORED
    bool second = index >= whole / 2u + 1u;
    PAIR x = element(column, second ? max(whole, index) - index : index, limit);
    if (index >= whole) x = PAIR(0);
    if (second) x.y = -x.y;
#else
    PAIR x = element(column, index, limit);
#endif
#if SWAPPED
    x = x.yx;
#endif
#if CHIRP_FIRST
    x = product(x, chirp(min(index, whole)));
#endif
    return x;
}

REAL cleaned(REAL x) { return abs(x) <= eps ? REAL(0) : x; }

void to_memory(Column column, uint position, PAIR x) {
    uint k = column.j % STORED_DONE;
    uint index = (column.j - k) * EXTENT + k + position * STORED_DONE;
    if (!column.is_there || index >= kept) return;
#if CHIRP_LAST
    x = product(x.yx, chirp(index));
#endif
#if SWAPPED_BACK
    x = x.yx;
#endif
#if LAST
    x = PAIR(cleaned(x.x * scale), cleaned(x.y * scale));
#endif
    nxv_store(r, (column.block * kept + index) * INNER + column.row, STORE(x));
}

#if STAGED
// What follows `group` positions begins `padding` further, so that neighbouring invocations use different banks.
uint slot(uint at, uint position, uint group, uint padding) {
#if LOADS_ROWS
    return at * (STAGED / COLUMNS) + position + position / group * padding;
#else
    return position * COLUMNS + at + position / group * padding;
#endif
}
#endif

// What an invocation has of a stage: columns `at`, and of each the transform `j` of `own`, whose elements are `own` apart.
#define TURNS(radix) ((EXTENT / radix * COLUMNS + THREADS - 1u) / THREADS)
#define EACH(radix, by_rows, body) { \
    const uint own = EXTENT / radix; \
    [[unroll]] for (uint turn = 0u; turn < TURNS(radix); turn++) { \
        uint id = gl_LocalInvocationIndex + turn * THREADS; \
        uint at = by_rows == 1 ? id / own : id % COLUMNS, j = by_rows == 1 ? id % own : id / COLUMNS; \
        if (id < own * COLUMNS) { body } \
    } \
}
#define ELEMENTS(radix) [[unroll]] for (uint i = 0u; i < radix; i++)

#define LOADED(v, radix) \
    PAIR v[TURNS(radix)][radix]; \
    EACH(radix, LOADS_ROWS, \
        Column column = column_of(at); \
        ELEMENTS(radix) v[turn][i] = source(column, column.j + (j + i * own) * STRIDE);) \
    if (TWIDDLE_TABLES > 0u) EACH(radix, LOADS_ROWS, \
        uint k = column_of(at).j % LOADED_DONE; \
        ELEMENTS(radix) \
            v[turn][i] = product(v[turn][i], power(TWIDDLES, TWIDDLE_BITS, TWIDDLE_TABLES, k * (j + i * own)));)

// The transforms of a stage, after others of `done` elements together.
#define TRANSFORMED(v, radix, done, by_rows) \
    EACH(radix, by_rows, \
        if (done > 1u) { \
            uint turned_by = j % done * (own / done); \
            [[unroll]] for (uint i = 1u; i < radix; i++) \
                v[turn][i] = product(v[turn][i], root(i * turned_by)); \
        } \
        dft(v[turn]);)

// Where what is transformed lies as what is to be transformed back.
#define CONVOLVED(v, radix) \
    EACH(radix, LOADS_ROWS, \
        uint first = column_of(at).j; \
        ELEMENTS(radix) \
            v[turn][i] = product(v[turn][i], nxv_load(filter_of, FILTER + first + (j + i * own) * STRIDE)).yx;)

#define PLACE(radix, done) (j - j % done) * radix + j % done + i * done
#define STORED(v, radix, done, by_rows) \
    EACH(radix, by_rows, \
        Column column = column_of(at); \
        ELEMENTS(radix) to_memory(column, PLACE(radix, done), v[turn][i]);)

// From one stage to the next one through shared memory, whole numbers or part by part. Both are rows, or neither is, or the
// last one alone is.
#define PUT(v, radix, done, group, padding, part) \
    EACH(radix, LOADS_ROWS, ELEMENTS(radix) staged[slot(at, PLACE(radix, done), group, padding)] = v[turn][i] part;)
#define GET(w, radix, by_rows, group, padding, part) \
    EACH(radix, by_rows, ELEMENTS(radix) w[turn][i] part = staged[slot(at, j + i * own, group, padding)];)
#if SPLIT
#define EXCHANGED(v, radix, done, w, next, by_rows, group, padding) \
    PAIR w[TURNS(next)][next]; \
    PUT(v, radix, done, group, padding, .x) barrier(); GET(w, next, by_rows, group, padding, .x) barrier(); \
    PUT(v, radix, done, group, padding, .y) barrier(); GET(w, next, by_rows, group, padding, .y)
#else
#define EXCHANGED(v, radix, done, w, next, by_rows, group, padding) \
    PAIR w[TURNS(next)][next]; \
    PUT(v, radix, done, group, padding, .xy) barrier(); GET(w, next, by_rows, group, padding, .xy)
#endif

void main() {
#if ROOTS_STAGED
    for (uint k = gl_LocalInvocationIndex; k < EXTENT; k += THREADS) staged_roots[k] = nxv_load(roots, ROOTS + k);
#endif
    STAGES
}
