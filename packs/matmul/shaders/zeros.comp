#version 450
// A product over no contracted elements.
#include "dtype.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant) uniform Zeros {
    uint count;
};

layout(set = 0, binding = 0, std430) writeonly restrict buffer Result { T_STORAGE result[]; };

void main() {
    uint element = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * THREADS + gl_LocalInvocationIndex;
    if (element < count) result[element] = T_STORE(T_VALUE(0));
}
