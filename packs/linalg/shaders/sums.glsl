// Sums over the invocations of a workgroup, the same for each of them: parts become LANES sums, and these one, in four chains so
// that additions need not wait for each other. With FOUR also of four numbers at once.
#if TILE < 16
#define LANES TILE
#else
#define LANES 16
#endif

#define TOTAL(TYPE, parts, few) \
    shared TYPE parts[TILE]; \
    shared TYPE few[LANES]; \
    TYPE total(TYPE part) { \
        uint own = gl_LocalInvocationIndex; \
        TYPE one = TYPE(REAL(0)), two = one, three = one, four = one; \
        parts[own] = part; \
        barrier(); \
        if (own < LANES) { \
            for (uint i = own; i < TILE; i += 4 * LANES) { \
                one += parts[i]; \
                if (i + LANES < TILE) two += parts[i + LANES]; \
                if (i + 2 * LANES < TILE) three += parts[i + 2 * LANES]; \
                if (i + 3 * LANES < TILE) four += parts[i + 3 * LANES]; \
            } \
            few[own] = (one + two) + (three + four); \
        } \
        barrier(); \
        one = two = three = four = TYPE(REAL(0)); \
        [[unroll]] for (uint i = 0; i < LANES; i += 4) { \
            one += few[i]; \
            if (i + 1 < LANES) two += few[i + 1]; \
            if (i + 2 < LANES) three += few[i + 2]; \
            if (i + 3 < LANES) four += few[i + 3]; \
        } \
        return (one + two) + (three + four); \
    }

// Barriers: every part is there; few sums are left, and parts may change.
TOTAL(REAL, parts, few)
#ifdef FOUR
#ifdef WORK_IS_COMPLEX
TOTAL(REAL4, parts_of_four_reals, few_of_four_reals)
#endif
TOTAL(WORK4, parts_of_four, few_of_four)
#endif
