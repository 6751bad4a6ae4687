// Addressing elements of tensors: the invocation's place in a dispatch, and division by extents known to the plan.
// INDEX is the integer type of element indices: uint, or uint64_t where 2^31 elements are not enough.
#ifndef NXV_TENSOR_GLSL
#define NXV_TENSOR_GLSL

#ifndef INDEX
#define INDEX uint
#endif

// Where a shader's parameters come from: push constants, or the plan's params when PARAMS_BINDING is defined.
#ifdef PARAMS_BINDING
#define PARAMS layout(set = 0, binding = PARAMS_BINDING, std430) readonly buffer
#else
#define PARAMS layout(push_constant, std430) uniform
#endif

// Number of this workgroup in a dispatch that is spread over x and y.
uint nxv_workgroup() {
    return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

// A divisor d up to 2^31 for dividends below 2^31 (Granlund and Montgomery 1994, theorem 4.2):
// shift = ceil(log2 d) - 1, magic = floor(2^(32 + shift) / d) + 1.
struct NxvDivisor {
    uint magic;
    uint shift;
};

uint nxv_divide(uint n, uint extent, NxvDivisor divisor) {
    uint high, low;
    umulExtended(n, divisor.magic, high, low);
    return extent == 1u ? n : high >> divisor.shift;
}

#ifdef NXV_HAS_INT64
uint64_t nxv_divide(uint64_t n, uint64_t extent, NxvDivisor divisor) {
    return n / extent;
}
#endif
#endif
