#version 450
// The sum of two operands, EACH elements per invocation, neighbours in neighbouring invocations.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer First { A_STORAGE a[]; };
layout(set = 0, binding = 1) readonly buffer Second { B_STORAGE b[]; };
layout(set = 0, binding = 2) writeonly buffer Output { R_STORAGE sums[]; };
layout(push_constant) uniform Push { uint count; uint a_first; uint a_step; uint b_first; uint b_step; };

void main() {
    uint first = gl_WorkGroupID.x * WORKGROUP * EACH + gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0; k < EACH; ++k) {
        uint i = first + k * WORKGROUP;
        if (i < count) {
            A_VALUE x = A_LOAD(nxv_load(a, a_first + i * a_step));
            B_VALUE y = B_LOAD(nxv_load(b, b_first + i * b_step));
            nxv_store(sums, i, R_STORE(x + y));
        }
    }
}
