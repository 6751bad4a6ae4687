// A pass of a stable sort of updates by a digit of their number (Satish, Harris and Garland 2009): a workgroup each block of
// BLOCK updates.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;

PARAMS Params {
    uint count;
    uint blocks;
    uint shift;
} params;

uint digit_of(uvec2 update) {
    return (update.x >> params.shift) & (DIGITS - 1u);
}
