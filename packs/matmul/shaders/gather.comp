#version 450
// Copies a view of any layout into a contiguous scratch buffer, whose elements are numbered through.
#include "dtype.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant) uniform Gather {
    uint count;
    uint offset;
    uint extents[AXES];
    uint strides[AXES];
};

layout(set = 0, binding = 0, std430) readonly restrict buffer From { T_STORAGE from[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer To { T_STORAGE to[]; };

void main() {
    uint element = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * THREADS + gl_LocalInvocationIndex;
    if (element >= count) return;
    uint rest = element;
    uint index = offset;
    [[unroll]] for (int axis = AXES - 1; axis >= 0; axis--) {
        index += rest % extents[axis] * strides[axis];
        rest /= extents[axis];
    }
    to[element] = from[index];
}
