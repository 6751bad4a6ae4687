// Lines along memory, or parts of them: a workgroup has one, CHUNK vectors of WIDTH elements at a time, of which each invocation
// takes VECTORS, neighbours side by side. REVERSE: from the last element to the first.
#ifndef ROWS_GLSL
#define ROWS_GLSL
#extension GL_KHR_shader_subgroup_shuffle : require
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "combine.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint operand_at;  // of the first line's first element in memory
    uint result_at;
    uint lines;
    uint axes_count;
    uint extent;
    uint parts;
    uint part_extent; // vectors of a part
} params;

layout(set = 0, binding = 1) readonly buffer Elements { A_VECTOR elements[]; };

#define CHUNK (WORKGROUP * VECTORS)
const uint SUBGROUP_COUNT = WORKGROUP / SUBGROUPS;

#if WIDTH == 1
#define LANE(vector, k) vector
#else
#define LANE(vector, k) vector[k]
#endif

// Where in its line a vector lies that is the `index`th of the scan.
uint place_of(uint index) {
#ifdef REVERSE
    return params.extent / WIDTH - 1 - index;
#else
    return index;
#endif
}

// The vectors of a part, in the order of the scan: the first one, and the one behind the last.
uvec2 vectors_of(uint part) {
    uint begin = part * params.part_extent;
    return uvec2(begin, begin + min(params.part_extent, params.extent / WIDTH - begin));
}
#endif
