// Merging the states of a workgroup's invocations: by subgroup shuffles as far as they reach, then in shared memory.
#ifndef EXCHANGE_GLSL
#define EXCHANGE_GLSL
#include "state.glsl"

shared ACC_VALUE shared_values[WORKGROUP];
#ifdef SECOND
shared SECOND shared_seconds[WORKGROUP];
#endif

#ifdef SUBGROUPS

#define EXCHANGED_F64(x, mask) packDouble2x32(subgroupShuffleXor(unpackDouble2x32(x), mask))
#if defined(ACC_IS_F64)
#define EXCHANGED(x, mask) EXCHANGED_F64(x, mask)
#elif defined(ACC_IS_C128)
#define EXCHANGED(pair, mask) dvec2(EXCHANGED_F64((pair).x, mask), EXCHANGED_F64((pair).y, mask))
#elif defined(ACC_IS_U64)
#define EXCHANGED(x, mask) packUint2x32(subgroupShuffleXor(unpackUint2x32(x), mask))
#elif defined(ACC_IS_S64)
#define EXCHANGED(x, mask) packInt2x32(subgroupShuffleXor(unpackInt2x32(x), mask))
#else
#define EXCHANGED(x, mask) subgroupShuffleXor(x, mask)
#endif

// Neighbours in a subgroup are neighbours here, whatever order the device gives gl_LocalInvocationIndex.
uint invocation() {
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

State from_subgroup(State state, uint mask) {
    state.value = EXCHANGED(state.value, mask);
#ifdef SECOND
    state.second = subgroupShuffleXor(state.second, mask);
#endif
    return state;
}

#else

uint invocation() {
    return gl_LocalInvocationIndex;
}

#endif

State from_workgroup(State state, uint mask) {
    uint mine = invocation();
    shared_values[mine] = state.value;
#ifdef SECOND
    shared_seconds[mine] = state.second;
#endif
    barrier(); // every state is stored before one is read
    state.value = shared_values[mine ^ mask];
#ifdef SECOND
    state.second = shared_seconds[mine ^ mask];
#endif
    barrier(); // every state is read before the next exchange overwrites it
    return state;
}

// Merges the states of all invocations whose numbers differ only in the bits from `low` up to `high`, both powers
// of two. Every invocation of the workgroup must come here.
State merge_across(State state, uint low, uint high) {
    uint mask = low;
#ifdef SUBGROUPS
    for (; mask < min(high, gl_SubgroupSize); mask <<= 1) {
        state = merge(state, from_subgroup(state, mask));
    }
#endif
    for (; mask < high; mask <<= 1) {
        state = merge(state, from_workgroup(state, mask));
    }
    return state;
}

#endif
