#version 450
// Roots of secular equations, a workgroup to one: bisection of the offset to the nearer pole, by its bits, so that it has all its
// digits however small it is.
#include "matrix.glsl"
#include "sums.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint rows; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) writeonly buffer Lists { WORK lists[]; };
layout(set = 0, binding = 1, std430) readonly buffer Poles { WORK poles[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Marks { uint marks[]; };

// Of what has to be found: where its poles start, the factor, the pole that it is near to, and on which side.
struct Root { uint start; WORK factor; WORK origin; WORK side; };

WORK value(Root root, WORK offset) {
    WORK part = WORK(0), x = root.side * offset;
    for (uint i = gl_LocalInvocationIndex; i < rows; i += TILE) {
        WORK share = nxv_load(poles, SHARES * total_rows + root.start + i);
        // In this order: an offset may be nothing beside its pole.
        precise WORK from_origin = nxv_load(poles, POLES * total_rows + root.start + i) - root.origin;
        precise WORK distance = from_origin - x;
        part += share * share / distance;
    }
    return WORK(1) + root.factor * total(part);
}

bool is_farther(Root root, WORK offset) { return root.side * value(root, offset) < WORK(0); }

#ifdef REAL_IS_F64
WORK of_words(uint high, uint low) { return packDouble2x32(uvec2(low, high)); }
uint high_word(WORK x) { return unpackDouble2x32(x).y; }
#else
WORK of_words(uint high, uint low) { return uintBitsToFloat(high); }
uint high_word(WORK x) { return floatBitsToUint(x); }
#endif

WORK bisect(Root root, WORK least, WORK most) {
    uint high = high_word(least), beyond = high_word(most) + 1;
    while (beyond - high > 1) {
        uint middle = high + (beyond - high) / 2;
        if (is_farther(root, of_words(middle, 0))) high = middle;
        else beyond = middle;
    }
    uint low = 0;
#ifdef REAL_IS_F64
    for (uint bit = 0x80000000u; bit > 0; bit >>= 1) {
        if (is_farther(root, of_words(high, low | bit))) low |= bit;
    }
#endif
    return of_words(high, low);
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, place = job % rows, start = job - place;
    WORK squares = WORK(0);
    for (uint i = own; i < rows; i += TILE) {
        WORK share = nxv_load(poles, SHARES * total_rows + start + i);
        squares += share * share;
    }
    squares = total(squares);
    WORK factor = nxv_load(poles, FACTORS * total_rows + job / rows);
    WORK pole = nxv_load(poles, POLES * total_rows + job);
    bool is_last = place + 1 == rows;
    WORK gap = is_last ? factor * squares * (WORK(1) + WORK(8 * rows) * EPSILON)
                       : nxv_load(poles, POLES * total_rows + job + 1) - pole;
    Root root = Root(start, factor, pole, WORK(1));
    WORK most = is_last ? gap : gap / WORK(2);
    uint origin = place;
    if (!is_last && is_farther(root, most)) {
        origin = place + 1;
        root.origin = nxv_load(poles, POLES * total_rows + job + 1);
        root.side = WORK(-1);
    }
    // The other terms are at most what all would be at half the gap.
    WORK share = nxv_load(poles, SHARES * total_rows + start + origin);
    WORK least = WORK(0.5) * factor * share * share / (WORK(1) + WORK(2) * factor * squares / gap);
    WORK offset = root.side * bisect(root, least, most);
    if (own > 0) return;
    nxv_store(lists, DIAGONAL * total_rows + job, root.origin + offset);
    nxv_store(lists, OFFSETS * total_rows + job, offset);
    nxv_store(marks, ORIGINS * total_rows + job, origin);
}
