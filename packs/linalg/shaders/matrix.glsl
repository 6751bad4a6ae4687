// What the shaders of matrices share. WORK is the type of a workspace, SUM the one of sums.
#include "dtype.glsl"
#include "tensor.glsl"

WORK not_a_number() { return WORK(uintBitsToFloat(0x7fc00000u)); }

// What the workgroup has stored so far, in buffers too, is there for all of it.
void meet() {
    groupMemoryBarrier();
    barrier();
}
