// How two neighbours of a scan combine, and how invocations of a subgroup learn of each other's values.
#ifndef COMBINE_GLSL
#define COMBINE_GLSL

#if defined(ACC_IS_F32) || defined(ACC_IS_F64)
#define IS_NAN(x) nxv_is_nan(x)
#else
#define IS_NAN(x) false
#endif

ACC_VALUE combine(ACC_VALUE a, ACC_VALUE b) {
    return COMBINE(a, b);
}

#ifdef SUBGROUPS
#define OTHER_F64(x, lane) packDouble2x32(subgroupShuffle(unpackDouble2x32(x), lane))
#if defined(ACC_IS_F64)
#define OTHER(x, lane) OTHER_F64(x, lane)
#elif defined(ACC_IS_C128)
#define OTHER(pair, lane) dvec2(OTHER_F64((pair).x, lane), OTHER_F64((pair).y, lane))
#elif defined(ACC_IS_U64)
#define OTHER(x, lane) packUint2x32(subgroupShuffle(unpackUint2x32(x), lane))
#elif defined(ACC_IS_S64)
#define OTHER(x, lane) packInt2x32(subgroupShuffle(unpackInt2x32(x), lane))
#else
#define OTHER(x, lane) subgroupShuffle(x, lane)
#endif
#endif
#endif
