#version 450
// One pass over rows of a transform: transforms of EXTENT elements, COLUMNS of them in a workgroup, in Stockham's order
// (Van Loan 1992, section 1.7). A row is STRIDE columns of EXTENT elements; the first DONE elements of it, and those that
// follow, are transformed by earlier passes. Bluestein's convolution (1970) multiplies with a chirp exp(-pi i j^2 / n).
#include "dtype.glsl"
#include "tensor.glsl"
#include "butterflies.glsl"

layout(local_size_x = THREADS) in;

// Columns of all rows that lie in one block of INNER rows, side by side.
layout(constant_id = 0) const uint SPAN = 1;
layout(constant_id = 1) const uint INNER = 1;
layout(constant_id = 2) const uint DONE = 1;
// Powers of roots of unity: where they begin, how many bits of an exponent one table has, and how many tables there are.
layout(constant_id = 3) const uint ROOTS = 0;
layout(constant_id = 4) const uint TWIDDLES = 0;
layout(constant_id = 5) const uint TWIDDLE_BITS = 0;
layout(constant_id = 6) const uint TWIDDLE_TABLES = 0;
#if CHIRPED
layout(constant_id = 7) const uint CHIRPS = 0;
layout(constant_id = 8) const uint CHIRP_BITS = 0;
layout(constant_id = 9) const uint CHIRP_TABLES = 0;
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
shared PAIR staged[STAGED];
#endif

PAIR power(uint first, uint bits, uint tables, uint exponent) {
    PAIR root = nxv_load(roots, first + (exponent & ((1u << bits) - 1u)));
    for (uint table = 1u; table < tables; table++) {
        exponent >>= bits;
        root = product(root, nxv_load(roots, first + (table << bits) + (exponent & ((1u << bits) - 1u))));
    }
    return root;
}

#if CHIRPED
PAIR chirp(uint j) {
    uint64_t square = uint64_t(j) * j;
    return power(CHIRPS, CHIRP_BITS, CHIRP_TABLES, uint(square % uint64_t(2u * whole)));
}
#endif

// A column: its place among the rows side by side, and in its row.
struct Column { bool is_there; uint block; uint j; uint row; };

Column column_of(uint column) {
    uint number = nxv_workgroup() * COLUMNS + column;
    uint rest = number % SPAN;
    return Column(number < count, number / SPAN, rest / INNER, rest % INNER);
}

#ifdef T_STORAGE
PAIR element(Column column, uint index) {
    return LOAD(nxv_load(t, (column.block * extent + index) * INNER + column.row + offset));
}
#endif

// Element `index` of what is transformed.
PAIR source(Column column, uint index) {
#if !defined(T_STORAGE)
    uint j = min(index, STRIDE * EXTENT - index);
    PAIR x = j < whole ? chirp(j) * PAIR(1, -1) : PAIR(0);
#elif MIRRORED
    bool second = index >= whole / 2u + 1u;
    uint own = second ? whole - index : index;
    PAIR x = PAIR(0);
    if (index < whole && own < limit) x = element(column, own);
    if (second) x.y = -x.y;
#else
    PAIR x = PAIR(0);
    if (index < limit) x = element(column, index);
#endif
#if SWAPPED
    x = x.yx;
#endif
#if CHIRP_FIRST
    if (index < whole) x = product(x, chirp(index));
#endif
#if FILTERED
    x = product(x, nxv_load(filter_of, index));
#endif
    return x;
}

PAIR from_memory(uint at, uint position) {
    Column column = column_of(at);
    if (!column.is_there) return PAIR(0);
    PAIR x = source(column, column.j + position * STRIDE);
#if INVERSE
    x = x.yx;
#endif
    uint k = column.j % DONE;
    if (TWIDDLE_TABLES == 0u || k == 0u) return x;
    return product(x, power(TWIDDLES, TWIDDLE_BITS, TWIDDLE_TABLES, k * position));
}

REAL cleaned(REAL x) { return abs(x) <= eps ? REAL(0) : x; }

void to_memory(uint at, uint position, PAIR x) {
    Column column = column_of(at);
    uint k = column.j % DONE;
    uint index = (column.j - k) * EXTENT + k + position * DONE;
    if (!column.is_there || index >= kept) return;
#if INVERSE
    x = x.yx;
#endif
#if CHIRP_LAST
    x = product(x, chirp(index));
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
// Neighbouring invocations have neighbouring columns or neighbouring elements: either way in different banks.
uint slot(uint at, uint position) {
#if LOADS_ROWS && STORES_ROWS
    return at * (EXTENT + EXTENT / 8u) + position + position / 8u;
#else
    return position * (COLUMNS + STORES_ROWS) + at;
#endif
}
PAIR from_shared(uint at, uint position) { return staged[slot(at, position)]; }
void to_shared(uint at, uint position, PAIR x) { staged[slot(at, position)] = x; }
#endif

// `done` as DONE, within the pass. `between` and `after` order a stage's reads before its writes and these before the next.
#define STAGE(radix, done, by_rows, load, between, store, after) { \
    const uint own = EXTENT / radix; \
    const uint turns = (own * COLUMNS + THREADS - 1u) / THREADS; \
    PAIR v[turns][radix]; \
    [[unroll]] for (uint turn = 0u; turn < turns; turn++) { \
        uint id = gl_LocalInvocationIndex + turn * THREADS; \
        uint at = by_rows ? id / own : id % COLUMNS, j = by_rows ? id % own : id / COLUMNS; \
        if (id < own * COLUMNS) { \
            [[unroll]] for (uint i = 0u; i < radix; i++) v[turn][i] = load(at, j + i * own); \
            if (done > 1u) { \
                uint step = j % done * (own / done); \
                [[unroll]] for (uint i = 1u; i < radix; i++) \
                    v[turn][i] = product(v[turn][i], nxv_load(roots, ROOTS + i * step)); \
            } \
            dft(v[turn]); \
        } \
    } \
    between; \
    [[unroll]] for (uint turn = 0u; turn < turns; turn++) { \
        uint id = gl_LocalInvocationIndex + turn * THREADS; \
        uint at = by_rows ? id / own : id % COLUMNS, j = by_rows ? id % own : id / COLUMNS; \
        uint k = j % done; \
        if (id < own * COLUMNS) { \
            [[unroll]] for (uint i = 0u; i < radix; i++) store(at, (j - k) * radix + k + i * done, v[turn][i]); \
        } \
    } \
    after; \
}
#define NOTHING
#define FIRST(radix) STAGE(radix, 1u, LOADS_ROWS == 1, from_memory, NOTHING, to_shared, barrier())
#define MIDDLE(radix, done) STAGE(radix, done, LOADS_ROWS == 1, from_shared, barrier(), to_shared, barrier())
#define FINAL(radix, done) STAGE(radix, done, STORES_ROWS == 1, from_shared, NOTHING, to_memory, NOTHING)
#define ONLY(radix) STAGE(radix, 1u, LOADS_ROWS == 1, from_memory, NOTHING, to_memory, NOTHING)

void main() {
    STAGES
}
