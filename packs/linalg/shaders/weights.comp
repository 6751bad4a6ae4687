#version 450
// The weights of poles for which computed roots are the exact ones (Gu and Eisenstat 1994), a workgroup to one. Factors are paired
// so that none is above 1.
#include "matrix.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint rows; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) buffer Lists { WORK lists[]; };
layout(set = 0, binding = 1, std430) readonly buffer Poles { WORK poles[]; };
layout(set = 0, binding = 2, std430) readonly buffer Marks { uint marks[]; };

shared WORK parts[TILE];

// How far a root is above the pole x.
WORK above(uint start, uint root, WORK x) {
    uint origin = nxv_load(marks, ORIGINS * total_rows + start + root);
    precise WORK from_pole = nxv_load(poles, POLES * total_rows + start + origin) - x;
    precise WORK distance = from_pole + nxv_load(lists, OFFSETS * total_rows + start + root);
    return distance;
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, place = job % rows, start = job - place;
    WORK pole = nxv_load(poles, POLES * total_rows + job), part = WORK(1);
    for (uint i = own; i + 1 < rows; i += TILE) {
        WORK other = nxv_load(poles, POLES * total_rows + start + (i < place ? i : i + 1));
        part *= abs(above(start, i, pole) / (other - pole));
    }
    parts[own] = part;
    barrier(); // every part is there
    if (own > 0) return;
    for (uint i = 1; i < TILE; i++) part *= parts[i];
    part *= abs(above(start, rows - 1, pole)) / nxv_load(poles, FACTORS * total_rows + job / rows);
    WORK share = nxv_load(poles, SHARES * total_rows + job);
    nxv_store(lists, WEIGHTS * total_rows + job, share < WORK(0) ? -sqrt(part) : sqrt(part));
}
