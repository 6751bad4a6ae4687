// A product C = A x B of strided matrices, repeated over batches: A is m x k, B is k x n.
// The pack defines T_* (dtype.glsl), PACK and VEC (WIDTH elements in memory and in registers), FMA, and for each
// operand whether its fast axis is the contracted one (*_ALONG_K) and whether it is read in packs (*_WIDE).
// A slab of C is one batch of one split; PARTIAL slabs keep the register type.
#include "dtype.glsl"

layout(push_constant) uniform Product {
    uint m, n, k;
    uint batches;
    uint a_offset, a_batch, a_free, a_contract;
    uint b_offset, b_batch, b_free, b_contract;
    uint c_row, c_column;
    uint blocks_m, blocks_n; // blocks of C that a slab consists of
    uint jobs;               // workgroups (or invocations, where a shader says so) with work to do
    uint chunk;              // contracted elements of one split
};

#if WIDTH == 4
#define UNPACK(p) VEC(T_LOAD((p).x), T_LOAD((p).y), T_LOAD((p).z), T_LOAD((p).w))
#define REPACK(v) PACK(T_STORE((v).x), T_STORE((v).y), T_STORE((v).z), T_STORE((v).w))
#else
#define UNPACK(p) VEC(T_LOAD((p).x), T_LOAD((p).y))
#define REPACK(v) PACK(T_STORE((v).x), T_STORE((v).y))
#endif

#if A_WIDE
layout(set = 0, binding = 0, std430) readonly restrict buffer A { PACK a[]; };
#define A_ITEM VEC
#define A_STEP WIDTH
#else
layout(set = 0, binding = 0, std430) readonly restrict buffer A { T_STORAGE a[]; };
#define A_ITEM T_VALUE
#define A_STEP 1
#endif

#if B_WIDE
layout(set = 0, binding = 1, std430) readonly restrict buffer B { PACK b[]; };
#define B_ITEM VEC
#define B_STEP WIDTH
#else
layout(set = 0, binding = 1, std430) readonly restrict buffer B { T_STORAGE b[]; };
#define B_ITEM T_VALUE
#define B_STEP 1
#endif

#if PARTIAL
#define C_ELEMENT T_VALUE
#define C_PACK VEC
#define TO_C(x) (x)
#define TO_C_PACK(x) (x)
#else
#define C_ELEMENT T_STORAGE
#define C_PACK PACK
#define TO_C(x) T_STORE(x)
#define TO_C_PACK(x) REPACK(x)
#endif

#if C_WIDE
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { C_PACK c[]; };
#else
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { C_ELEMENT c[]; };
#endif

// Element `index` of A or B, or the pack that starts there.
A_ITEM load_a(uint index) {
#if A_WIDE
    return UNPACK(a[index / WIDTH]);
#else
    return T_LOAD(a[index]);
#endif
}

B_ITEM load_b(uint index) {
#if B_WIDE
    return UNPACK(b[index / WIDTH]);
#else
    return T_LOAD(b[index]);
#endif
}

#if WIDTH > 1
// WIDTH results of one row from `column` on; those beyond the last column are dropped.
void store_c(uint slab, uint row, uint column, VEC values) {
    uint index = (slab * m + row) * n + column;
#if C_WIDE
    if (column < n) c[index / WIDTH] = TO_C_PACK(values);
#else
    [[unroll]] for (uint i = 0; i < WIDTH; i++) {
        if (column + i < n) c[index + i] = TO_C(values[i]);
    }
#endif
}
#endif

uint workgroup() {
    return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}
