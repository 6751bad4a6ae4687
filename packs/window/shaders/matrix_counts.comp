#version 460
// Says that nothing is to be computed anew so far, where nothing else comes before the product.
#include "dtype.glsl"
#include "tensor.glsl"
#define COUNTS 0
#include "unfit.glsl"

layout(local_size_x = 1) in;

void main() {
    compute_nothing_anew();
}
