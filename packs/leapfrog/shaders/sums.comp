#version 450
// Adds the terms of each row: LANES invocations share a row, and what each of them added is added in a tree. On one
// device the order depends on the row's extent alone.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 0) const uint LANES = 1;

layout(push_constant) uniform Params {
    uint rows;
    uint extent;
} params;

layout(set = 0, binding = 0) readonly buffer Terms { REAL terms[]; };
layout(set = 0, binding = 1) writeonly buffer Sums { REAL sums[]; };

shared REAL partial[WORKGROUP];

void main() {
    const uint rows = WORKGROUP / LANES;
    uint own = gl_LocalInvocationIndex;
    uint lane = own % LANES;
    for (uint begin = gl_WorkGroupID.x * rows; begin < params.rows; begin += gl_NumWorkGroups.x * rows) {
        uint row = begin + own / LANES;
        precise REAL sum = REAL(0);
        if (row < params.rows) {
            for (uint i = lane; i < params.extent; i += LANES) {
                sum = sum + nxv_load(terms, row * params.extent + i);
            }
        }
        partial[own] = sum;
        for (uint distance = LANES / 2; distance > 0; distance /= 2) {
            barrier(); // what the last round wrote is read
            if (lane < distance) {
                sum = sum + partial[own + distance];
                partial[own] = sum;
            }
        }
        if (row < params.rows && lane == 0) nxv_store(sums, row, sum);
        barrier(); // all reads come before the writes of the next rows
    }
}
