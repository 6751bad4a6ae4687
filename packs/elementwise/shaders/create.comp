#version 450
// A tensor made of nothing: each element is an expression of its index.
#include "dtype.glsl"
#include "tensor.glsl"

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
    INDEX outer = params.inner.extent == 1 ? i : nxv_divide(i, params.inner.extent, params.inner.divisor);
    INDEX below = i - outer * params.inner.extent;
    INDEX along = params.counted.extent == 1
        ? INDEX(0) : outer - nxv_divide(outer, params.counted.extent, params.counted.divisor) * params.counted.extent;
    uvec4 bits = uvec4(params.bits[0], params.bits[1], params.bits[2], params.bits[3]);
    return R_STORE(R_CAST(EXPRESSION));
}

void main() {
    INDEX first = (INDEX(nxv_workgroup()) * WORKGROUP + gl_LocalInvocationID.x) * WIDTH;
    if (first >= params.count) return;
    if (params.count - first < WIDTH) {
        for (INDEX i = first; i < params.count; ++i) r_elements[params.result_at + i] = create(i);
        return;
    }
#if WIDTH == 1
    r_vectors[params.result_at + first] = create(first);
#elif WIDTH == 2
    r_vectors[(params.result_at + first) / 2] = R_VECTOR(create(first), create(first + 1));
#else
    r_vectors[(params.result_at + first) / 4] =
        R_VECTOR(create(first), create(first + 1), create(first + 2), create(first + 3));
#endif
}
