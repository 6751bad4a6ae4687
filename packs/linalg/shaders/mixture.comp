#version 450
// What an eigenvector of two systems that became one has of each of theirs: a workgroup to one.
#include "matrix.glsl"
#include "sums.glsl"
#include "lists.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint rows; uint padded; uint total_rows; };
layout(set = 0, binding = 0, std430) readonly buffer Lists { WORK lists[]; };
layout(set = 0, binding = 1, std430) readonly buffer Poles { WORK poles[]; };
layout(set = 0, binding = 2, std430) readonly buffer Marks { uint marks[]; };
layout(set = 0, binding = 3, std430) writeonly buffer To { WORK to[]; };

WORK element(uint start, uint i, WORK origin, WORK offset) {
    precise WORK from_origin = nxv_load(poles, POLES * total_rows + start + i) - origin;
    precise WORK distance = from_origin - offset;
    return nxv_load(lists, WEIGHTS * total_rows + start + i) * (offset / distance);
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex, start = job / rows * rows;
    WORK origin = nxv_load(poles, POLES * total_rows + start + nxv_load(marks, ORIGINS * total_rows + job));
    WORK offset = nxv_load(lists, OFFSETS * total_rows + job), part = WORK(0);
    for (uint i = own; i < rows; i += TILE) {
        WORK x = element(start, i, origin, offset);
        part += x * x;
    }
    WORK norm = sqrt(total(part));
    for (uint i = own; i < rows; i += TILE) {
        WORK x = element(start, i, origin, offset) / norm;
        nxv_store(to, job * rows + nxv_load(marks, ORDER * total_rows + start + i), x);
    }
}
