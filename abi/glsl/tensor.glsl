// Elements of tensors: access to them, the invocation's place in a dispatch, and division by extents known to the plan.
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

// nxv_load(array, index) is array[index], and nxv_store(array, index, value) assigns to it. In the host's checked mode an
// index outside of the array is reported with file and line; the load then gives 0, and the store does nothing.
#ifndef NXV_CHECKED
#define nxv_load(array, index) array[index]
#define nxv_store(array, index, value) (array[index] = (value))
#else

// What the host reads after a plan. NXV_CHECKED is the binding, NXV_SHADER the shader's number in the plan.
struct NxvReport { uint shader; uint file; uint line; uint is_store; uint index_low; uint index_high; uint length; };
layout(set = 0, binding = NXV_CHECKED, std430) buffer NxvReports {
    uint nxv_report_count;
    NxvReport nxv_reports[NXV_REPORTS];
};

// An index of any type, as a 64-bit number.
struct NxvIndex { uint low; uint high; };
NxvIndex nxv_wide(uint index) { return NxvIndex(index, 0u); }
NxvIndex nxv_wide(int index) { return NxvIndex(uint(index), index < 0 ? 0xffffffffu : 0u); }
#ifdef NXV_HAS_INT64
NxvIndex nxv_wide(uint64_t index) { return NxvIndex(uint(index), uint(index >> 32)); }
NxvIndex nxv_wide(int64_t index) { return nxv_wide(uint64_t(index)); }
#endif

bool nxv_is_inside(NxvIndex index, uint length, uint is_store, int file, int line) {
    if (index.high == 0u && index.low < length) return true;
    uint place = atomicAdd(nxv_report_count, 1u);
    if (place < NXV_REPORTS) {
        nxv_reports[place] =
            NxvReport(NXV_SHADER, uint(file), uint(line), is_store, index.low, index.high, length);
    }
    return false;
}

// Whether the load at hand is inside: set when its index is known, used when its element is there.
bool nxv_loads;
uint nxv_place(NxvIndex index, uint length, int file, int line) {
    nxv_loads = nxv_is_inside(index, length, 0u, file, line);
    return nxv_loads ? index.low : 0u;
}

#define NXV_LOADED(type) type nxv_loaded(type x) { return nxv_loads ? x : type(0); }
NXV_LOADED(float) NXV_LOADED(vec2) NXV_LOADED(vec3) NXV_LOADED(vec4)
NXV_LOADED(int) NXV_LOADED(ivec2) NXV_LOADED(ivec3) NXV_LOADED(ivec4)
NXV_LOADED(uint) NXV_LOADED(uvec2) NXV_LOADED(uvec3) NXV_LOADED(uvec4)
#ifdef NXV_DTYPE_GLSL
#ifdef NXV_NEEDS_INT8
NXV_LOADED(int8_t) NXV_LOADED(i8vec2) NXV_LOADED(i8vec3) NXV_LOADED(i8vec4)
NXV_LOADED(uint8_t) NXV_LOADED(u8vec2) NXV_LOADED(u8vec3) NXV_LOADED(u8vec4)
#endif
#ifdef NXV_NEEDS_INT16
NXV_LOADED(int16_t) NXV_LOADED(i16vec2) NXV_LOADED(i16vec3) NXV_LOADED(i16vec4)
NXV_LOADED(uint16_t) NXV_LOADED(u16vec2) NXV_LOADED(u16vec3) NXV_LOADED(u16vec4)
#endif
#ifdef NXV_HAS_INT64
NXV_LOADED(int64_t) NXV_LOADED(i64vec2) NXV_LOADED(i64vec3) NXV_LOADED(i64vec4)
NXV_LOADED(uint64_t) NXV_LOADED(u64vec2) NXV_LOADED(u64vec3) NXV_LOADED(u64vec4)
#endif
#ifdef NXV_HAS_FP64
NXV_LOADED(double) NXV_LOADED(dvec2) NXV_LOADED(dvec3) NXV_LOADED(dvec4)
#endif
#endif

#define nxv_load(array, index) \
    nxv_loaded(array[nxv_place(nxv_wide(index), uint(array.length()), __FILE__, __LINE__)])
#define nxv_store(array, index, value) \
    do { \
        NxvIndex nxv_at = nxv_wide(index); \
        if (nxv_is_inside(nxv_at, uint(array.length()), 1u, __FILE__, __LINE__)) array[nxv_at.low] = (value); \
    } while (false)
#endif

// nxv_fault(absent) tells the host, where `absent`, that an element of the result does not exist: whoever reads the result
// gets the error of the op. The host listens in ops that are not defined everywhere: `quotient` and `remainder` of integers
// (division by 0), `pow` and shifts of integers (a negative second operand), and where elements are read or written by index
// (one that is out of bounds). Elsewhere it does nothing.
#ifdef NXV_FAULTS
layout(set = 0, binding = NXV_FAULTS, std430) buffer NxvFaults { uint nxv_faults; };
void nxv_fault(bool absent) {
    if (absent) atomicOr(nxv_faults, 1u);
}
#else
#define nxv_fault(absent)
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
