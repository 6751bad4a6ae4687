#version 450
// A round of rotations of large symmetric matrices, from one buffer to another: an invocation turns the elements that two pairs
// of indices have in common, or those of two eigenvectors.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint round; uint tiles; float least; };
layout(set = 0, binding = 0, std430) readonly buffer From { WORK from[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { WORK to[]; };
layout(set = 0, binding = 2, std430) buffer V { WORK v[]; };
layout(set = 0, binding = 3, std430) readonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 4, std430) buffer States { uint states[]; };

WORK cell(uint first, uint i, uint j) {
    return max(i, j) < n ? nxv_load(from, first + i * n + j) : WORK(0);
}

Rotation turn_of(uint first, uvec2 pair, WORK least_now) {
    WORK off = cell(first, pair.x, pair.y);
    if (!(abs(off) > least_now)) return NONE;
    return rotation(cell(first, pair.x, pair.x), cell(first, pair.y, pair.y), off);
}

void put(uint first, uint i, uint j, WORK x) {
    if (max(i, j) < n) nxv_store(to, first + i * n + j, x);
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / tiles;
    if (nxv_load(states, 2 * batch) == 0) return;
    uint at = job % tiles * 64 + gl_LocalInvocationIndex;
    uint half_count = (n + 1) / 2, first = batch * n * n;
    WORK least_now = WORK(least) * sqrt(nxv_load(norms, batch));
    if (at < half_count * half_count) {
        uint row = at / half_count, column = at % half_count;
        uvec2 p = pair_of(row, round, half_count), q = pair_of(column, round, half_count);
        Rotation left = turn_of(first, p, least_now), right = turn_of(first, q, least_now);
        WORK tl = cell(first, p.x, q.x), tr = cell(first, p.x, q.y);
        WORK bl = cell(first, p.y, q.x), br = cell(first, p.y, q.y);
        if (row == column && left.s != WORK(0)) {
            nxv_store(states, 2 * batch + 1, 1);
            put(first, p.x, p.x, tl - left.t * tr);
            put(first, p.x, p.y, WORK(0));
            put(first, p.y, p.x, WORK(0));
            put(first, p.y, p.y, br + left.t * tr);
            return;
        }
        WORK top_left = tl * left.c - bl * left.s, bottom_left = tl * left.s + bl * left.c;
        WORK top_right = tr * left.c - br * left.s, bottom_right = tr * left.s + br * left.c;
        put(first, p.x, q.x, top_left * right.c - top_right * right.s);
        put(first, p.x, q.y, top_left * right.s + top_right * right.c);
        put(first, p.y, q.x, bottom_left * right.c - bottom_right * right.s);
        put(first, p.y, q.y, bottom_left * right.s + bottom_right * right.c);
        return;
    }
    at -= half_count * half_count;
    if (at >= half_count * n) return;
    uvec2 pair = pair_of(at / n, round, half_count);
    Rotation turn = turn_of(first, pair, least_now);
    if (turn.s == WORK(0)) return;
    uvec2 own = first + pair * n + at % n;
    WORK x = nxv_load(v, own.x), y = nxv_load(v, own.y);
    nxv_store(v, own.x, x * turn.c - y * turn.s);
    nxv_store(v, own.y, x * turn.s + y * turn.c);
}
