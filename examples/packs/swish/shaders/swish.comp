#version 450
// x * sigmoid(x), one element per invocation. A is the operand's type and R the result's.
#include "dtype.glsl"
#include "tensor.glsl"
#include "math_f32.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Input { A_STORAGE x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { R_STORAGE y[]; };
layout(push_constant) uniform Push { uint first; uint count; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) {
        A_VALUE value = A_LOAD(nxv_load(x, first + i));
        nxv_store(y, i, R_STORE(value * nxv_sigmoid(value)));
    }
}
