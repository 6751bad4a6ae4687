#version 450
// A tensor made of nothing: each element is an expression of its index.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lanes.glsl"

struct Axis {
    INDEX extent;
    NxvDivisor divisor;
};

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    INDEX count;
    INDEX result_at;
    INDEX start;
    Axis counted;
    Axis inner;
    uint bits[4];
} params;

layout(set = 0, binding = 0) writeonly buffer RElements { R_STORAGE r_elements[]; };
layout(set = 0, binding = 0) writeonly buffer RVectors { R_VECTOR r_vectors[]; };

R_STORAGE create(INDEX i) {
    i += params.start;
    // Names that expressions use: the index along the counted axis, the index below it, the element's bytes.
    INDEX outer = nxv_divide(i, params.inner.extent, params.inner.divisor);
    INDEX below = i - outer * params.inner.extent;
    INDEX along = outer - nxv_divide(outer, params.counted.extent, params.counted.divisor) * params.counted.extent;
    uvec4 bits = uvec4(params.bits[0], params.bits[1], params.bits[2], params.bits[3]);
    return R_STORE(R_CAST(EXPRESSION));
}

#define CREATE_LANE(k) create(first + k)

void main() {
    INDEX first = (INDEX(nxv_workgroup()) * WORKGROUP + gl_LocalInvocationID.x) * WIDTH;
    if (first >= params.count) return;
    if (params.count - first < WIDTH) {
        for (INDEX i = first; i < params.count; ++i) nxv_store(r_elements, uint(params.result_at + i), create(i));
        return;
    }
    nxv_store(r_vectors, uint((params.result_at + first) / WIDTH), R_VECTOR(LANES(CREATE_LANE)));
}
