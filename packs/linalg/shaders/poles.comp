#version 450
// The secular equation by which two neighbouring systems of rows / 2 eigenvalues become one (Cuppen 1981), a workgroup to each.
// Nothing is deflated: poles that are as good as equal move apart, and weights that are as good as 0 become small ones, both by
// less than rounding does.
#include "matrix.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint rows; uint padded; uint total_rows; uint section; };
layout(set = 0, binding = 0, std430) readonly buffer Lists { WORK lists[]; };
layout(set = 0, binding = 1, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 2, std430) coherent buffer Poles { WORK poles[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Marks { uint marks[]; };

shared uint crowded;

// How many of `size` ascending numbers from `start` on are below x, or not above it.
uint rank(uint start, uint size, WORK x, bool also_equal) {
    uint from_here = 0, to_here = size;
    while (from_here < to_here) {
        uint middle = (from_here + to_here) / 2;
        WORK other = nxv_load(lists, section * total_rows + start + middle);
        if (other < x || (also_equal && other == x)) from_here = middle + 1;
        else to_here = middle;
    }
    return from_here;
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, start = job * rows, block = rows / 2;
    uint last = start + block - 1;
    WORK off = last % padded + 1 < n ? nxv_load(lists, BESIDE * total_rows + last) : WORK(0);
    crowded = 0;
    for (uint i = own; i < rows; i += TILE) {
        bool is_second = i >= block;
        WORK x = nxv_load(lists, section * total_rows + start + i);
        uint place = i % block + rank(start + (is_second ? 0 : block), block, x, is_second);
        WORK share = nxv_load(from, (start + i) * block + (is_second ? 0 : block - 1));
        if (is_second && off < WORK(0)) share = -share;
        share *= sqrt(WORK(0.5));
        if (abs(share) < EPSILON) share = share < WORK(0) ? -EPSILON : EPSILON;
        nxv_store(poles, POLES * total_rows + start + place, x);
        nxv_store(poles, SHARES * total_rows + start + place, share);
        nxv_store(marks, ORDER * total_rows + start + place, i);
    }
    meet(); // poles are in order
    WORK lowest = nxv_load(poles, POLES * total_rows + start);
    WORK highest = nxv_load(poles, POLES * total_rows + start + rows - 1);
    WORK factor = WORK(2) * abs(off);
    WORK scale = max(max(abs(lowest), abs(highest)), max(factor, EPSILON));
    if (own == 0) nxv_store(poles, FACTORS * total_rows + job, max(factor, EPSILON * scale));
    WORK apart = EPSILON * EPSILON * scale;
    for (uint i = own + 1; i < rows; i += TILE) {
        WORK x = nxv_load(poles, POLES * total_rows + start + i - 1);
        WORK y = nxv_load(poles, POLES * total_rows + start + i);
        if (y < x + max(WORK(2) * EPSILON * abs(x), apart)) crowded = 1;
    }
    barrier(); // every pair has been looked at
        if (own > 0 || crowded == 0) return;
    WORK x = lowest;
    for (uint i = 1; i < rows; i++) {
        WORK least = x + max(WORK(2) * EPSILON * abs(x), apart);
        x = max(nxv_load(poles, POLES * total_rows + start + i), least);
        nxv_store(poles, POLES * total_rows + start + i, x);
    }
}
