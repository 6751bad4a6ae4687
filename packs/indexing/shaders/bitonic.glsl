// Sorts `sorted`, SORTED of KEY in shared memory, as `is_below` has it, by a whole workgroup. All barriers are within.
#define EXCHANGE(a, b) \
    if (is_below(b, a) == is_ascending) { \
        KEY kept = a; \
        a = b; \
        b = kept; \
    }

// Bitonic (Batcher 1968), two rounds at once where there are two.
void sort() {
    for (uint run = 2u; run <= SORTED; run <<= 1) {
        uint apart = run >> 1;
        if ((findMSB(run) & 1) == 1) {
            for (uint i = gl_LocalInvocationIndex; i < SORTED / 2u; i += WORKGROUP) {
                uint low = ((i & ~(apart - 1u)) << 1) | (i & (apart - 1u));
                bool is_ascending = (low & run) == 0u;
                KEY a = sorted[low], b = sorted[low + apart];
                EXCHANGE(a, b)
                sorted[low] = a;
                sorted[low + apart] = b;
            }
            barrier(); // a round is over before the next one reads what it exchanged
            apart >>= 1;
        }
        for (apart >>= 1; apart > 0u; apart >>= 2) {
            for (uint i = gl_LocalInvocationIndex; i < SORTED / 4u; i += WORKGROUP) {
                uint low = ((i & ~(apart - 1u)) << 2) | (i & (apart - 1u));
                bool is_ascending = (low & run) == 0u;
                KEY a = sorted[low], b = sorted[low + apart];
                KEY c = sorted[low + 2u * apart], d = sorted[low + 3u * apart];
                EXCHANGE(a, c)
                EXCHANGE(b, d)
                EXCHANGE(a, b)
                EXCHANGE(c, d)
                sorted[low] = a;
                sorted[low + apart] = b;
                sorted[low + 2u * apart] = c;
                sorted[low + 3u * apart] = d;
            }
            barrier(); // as above
        }
    }
}
