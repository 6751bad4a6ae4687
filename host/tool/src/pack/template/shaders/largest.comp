#version 450
// The largest element of each row of a row-major f32 matrix, one workgroup for each row. NaN wins, as in docs/ops.md.
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Operand { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Result { float largest[]; };
layout(push_constant) uniform Push { uint first; uint rows; uint columns; };

shared float partial[WORKGROUP];

float larger(float a, float b) {
    return isnan(a) || a > b ? a : b;
}

void main() {
    uint row = nxv_workgroup();
    // The whole workgroup returns, so nobody waits at the barriers below for somebody who left.
    if (row >= rows) return;
    uint lane = gl_LocalInvocationID.x;
    // A row has at least one element. Lanes beyond its end repeat the last one.
    float found = nxv_load(x, first + row * columns + min(lane, columns - 1));
    for (uint column = lane; column < columns; column += WORKGROUP) {
        found = larger(found, nxv_load(x, first + row * columns + column));
    }
    partial[lane] = found;
    for (uint width = WORKGROUP / 2; width > 0; width /= 2) {
        // Orders the stores of the round before with the loads of this one.
        barrier();
        if (lane < width) partial[lane] = larger(partial[lane], partial[lane + width]);
    }
    if (lane == 0) nxv_store(largest, row, partial[0]);
}
