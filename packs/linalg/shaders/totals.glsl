// Sums of COUNT values over a workgroup: add_up(values), a barrier, then total(which). Subgroups add halves of the values while
// they hand on the others, so that a step takes half as many exchanges as the one before. SUBGROUP is 1 without shuffles.
#if SUBGROUP > 1
#define GROUP gl_SubgroupID
#define LANE gl_SubgroupInvocationID
#else
#define GROUP gl_LocalInvocationIndex
#define LANE 0
#define subgroupShuffleXor(x, mask) (x)
#endif

const uint LEFT = COUNT > SUBGROUP ? COUNT / SUBGROUP : 1;

shared WORK parts_of_groups[TILE / SUBGROUP][COUNT];

#define EXCHANGE(mask) \
    if (mask < SUBGROUP) { \
        const uint some = COUNT / (2 * mask); \
        bool is_upper = (LANE & mask) != 0; \
        if (some == 0) values[0] += subgroupShuffleXor(values[0], mask); \
        [[unroll]] for (uint i = 0; i < some; i++) { \
            WORK given = is_upper ? values[i] : values[i + some]; \
            WORK kept = is_upper ? values[i + some] : values[i]; \
            values[i] = kept + subgroupShuffleXor(given, mask); \
        } \
        if (is_upper) place += some; \
    }

// The steps are spelled out, since values stay in registers only where every index is a constant.
void add_up(WORK values[COUNT]) {
    uint place = 0;
    EXCHANGE(1)
    EXCHANGE(2)
    EXCHANGE(4)
    EXCHANGE(8)
    EXCHANGE(16)
    EXCHANGE(32)
    EXCHANGE(64)
    if (LANE >= COUNT) return;
    [[unroll]] for (uint i = 0; i < LEFT; i++) parts_of_groups[GROUP][place + i] = values[i];
}

WORK total(uint which) {
    WORK sum = WORK(0);
    [[unroll]] for (uint group = 0; group < TILE / SUBGROUP; group++) sum += parts_of_groups[group][which];
    return sum;
}
