// A product C = A x B of strided matrices, repeated over batches: A is m x k, B is k x n.
// The pack defines T_* (dtype.glsl), PACK and VEC (WIDTH results in memory and in registers), FMA, and for each operand
// its type, *_PACK, *_GET (from memory to registers of the result's type), whether its fast axis is the contracted one
// (*_ALONG_K) and whether it is read in packs (*_WIDE). A shader that loads operands its own way defines OWN_LOADS.
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
#if TURNS
    uint first_workgroup;    // of this dispatch, where others run the rest
#endif
#ifdef EPILOGUE_WORDS
    uint epilogue[EPILOGUE_WORDS];
#endif
};
#ifdef EPILOGUE
#include "epilogue.glsl"
#else
#define Neighbours uint
#define neighbours_at(batch, row, column) 0u
#endif

#if WIDTH == 4
#define UNPACK(GET, p) VEC(GET((p).x), GET((p).y), GET((p).z), GET((p).w))
#define REPACK(v) PACK(T_STORE((v).x), T_STORE((v).y), T_STORE((v).z), T_STORE((v).w))
#else
#define UNPACK(GET, p) VEC(GET((p).x), GET((p).y))
#define REPACK(v) PACK(T_STORE((v).x), T_STORE((v).y))
#endif

#ifndef OWN_LOADS
#if A_WIDE
layout(set = 0, binding = 0, std430) readonly restrict buffer A { A_PACK a[]; };
#define A_ITEM VEC
#define A_STEP WIDTH
#else
layout(set = 0, binding = 0, std430) readonly restrict buffer A { A_STORAGE a[]; };
#define A_ITEM T_VALUE
#define A_STEP 1
#endif

#if B_WIDE
layout(set = 0, binding = 1, std430) readonly restrict buffer B { B_PACK b[]; };
#define B_ITEM VEC
#define B_STEP WIDTH
#else
layout(set = 0, binding = 1, std430) readonly restrict buffer B { B_STORAGE b[]; };
#define B_ITEM T_VALUE
#define B_STEP 1
#endif

// Element `index` of A or B, or the pack that starts there, which is loaded as a whole: of single components NVIDIA's compiler makes
// as many loads, each with a test of its own whether it is in bounds.
A_ITEM load_a(uint index) {
#if A_WIDE
    A_PACK pack = a[index / WIDTH];
    return UNPACK(A_GET, pack);
#else
    return A_GET(a[index]);
#endif
}

B_ITEM load_b(uint index) {
#if B_WIDE
    B_PACK pack = b[index / WIDTH];
    return UNPACK(B_GET, pack);
#else
    return B_GET(b[index]);
#endif
}
#endif

#if PARTIAL
#define C_ELEMENT T_VALUE
#define C_PACK VEC
#define TO_C(x, batch, row, column) (x)
#define TO_C_PACK(own, x, batch, row, column) (x)
#elif defined(EPILOGUE)
#define C_ELEMENT R_STORAGE
#define C_PACK R_PACK
#define TO_C(x, batch, row, column) R_STORE(finished(x, batch, row, column))
#if C_WIDE
R_PACK to_c_pack(Neighbours own, VEC v, uint batch, uint row, uint column) {
#define PART(i) R_STORE(finished(own, i, v[i], batch, row, column + i))
#if WIDTH == 4
    return R_PACK(PART(0), PART(1), PART(2), PART(3));
#else
    return R_PACK(PART(0), PART(1));
#endif
}
#endif
#define TO_C_PACK(own, v, batch, row, column) to_c_pack(own, v, batch, row, column)
#else
#define C_ELEMENT T_STORAGE
#define C_PACK PACK
#define TO_C(x, batch, row, column) T_STORE(x)
#define TO_C_PACK(own, x, batch, row, column) REPACK(x)
#endif

#if C_WIDE
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { C_PACK c[]; };
#else
layout(set = 0, binding = 2, std430) writeonly restrict buffer C { C_ELEMENT c[]; };
#endif

uint workgroup() {
#if !TURNS
    const uint first_workgroup = 0;
#endif
    return first_workgroup + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}
