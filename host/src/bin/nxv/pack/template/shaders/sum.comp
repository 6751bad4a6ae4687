#version 450
// The sum of each row of a row-major f32 matrix: one workgroup for each row, pairs added in a fixed order, so that the
// same operand always gives the same bits.
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Operand { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Result { float sums[]; };
layout(push_constant) uniform Push { uint first; uint rows; uint columns; };

shared float partial[WORKGROUP];

void main() {
    uint row = nxv_workgroup();
    // The whole workgroup returns, so nobody waits at the barriers below for somebody who left.
    if (row >= rows) return;
    uint lane = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint column = lane; column < columns; column += WORKGROUP) sum += x[first + row * columns + column];
    partial[lane] = sum;
    for (uint width = WORKGROUP / 2; width > 0; width /= 2) {
        // Orders the stores of the round before with the loads of this one.
        barrier();
        if (lane < width) partial[lane] += partial[lane + width];
    }
    if (lane == 0) sums[row] = partial[0];
}
