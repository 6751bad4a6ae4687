// One operand of matrix.comp, which includes this for each of them: SIDE(name) and side(name) are names of its own, EDGE the
// elements of a block along its free axis, EXTENT those that there are, BASE where it begins in shared memory.
// It lies there as it does in memory, along k or along the free axis, in items of a uvec4.
#if WIDE && RAW
layout(set = 0, binding = BINDING, std430) readonly restrict buffer SIDE(Operand) { uvec4 side(memory)[]; };
#elif WIDE
layout(set = 0, binding = BINDING, std430) readonly restrict buffer SIDE(Operand) { SIDE(FOUR) side(memory)[]; };
#else
layout(set = 0, binding = BINDING, std430) readonly restrict buffer SIDE(Operand) { SIDE(STORAGE) side(memory)[]; };
#endif

const uint SIDE(PARTS) = (ALONG_K == 1 ? BK : EDGE) / PER; // items of a row
const uint SIDE(ITEMS) = EDGE * BK / PER / THREADS;              // and of an invocation

uvec4 side(next)[SIDE(ITEMS)];

// An element, and two of them, as the bits that are multiplied.
#if RAW
#define OF(x) (uint(x) & MASK)
#else
#define OF(x) uint(D_STORE(SIDE(LOAD)(x)))
#endif
#define BOTH(x, y) (OF(x) | (OF(y) << 16))

// Row and column of the tile at which item `i` of the invocation lies.
uvec2 side(place)(uint i) {
    uint item = gl_LocalInvocationIndex + i * THREADS;
    return uvec2(item / SIDE(PARTS), item % SIDE(PARTS));
}

// What lies beyond k is 0 on both sides, so that it adds nothing. What lies beyond the last row or column repeats that, and
// its sums are never stored. Strides are modulo 2^32, so that of an index only the whole is divided.
void side(fetch)(uint start, uint corner, uint k_at) {
    [[unroll]] for (uint i = 0; i < SIDE(ITEMS); i++) {
        uvec2 place = side(place)(i);
#if ALONG_K
        uint row = corner + place.x, k_here = k_at + place.y * PER;
#else
        uint row = corner + place.y * PER, k_here = k_at + place.x;
#endif
        uvec4 item = uvec4(0);
#if WIDE
        if (k_here < k_end) {
            uint at = start + min(row, EXTENT - (ALONG_K == 1 ? 1 : PER)) * side(free) + k_here * side(contract);
#if RAW
            item = side(memory)[at / PER];
#else
            SIDE(FOUR) x = side(memory)[at / 4], y = side(memory)[at / 4 + 1];
            item = uvec4(BOTH(x.x, x.y), BOTH(x.z, x.w), BOTH(y.x, y.y), BOTH(y.z, y.w));
#endif
        }
#else
        [[unroll]] for (uint j = 0; j < PER; j++) {
            uint across = ALONG_K == 1 ? 0 : j, along = j - across;
            if (k_here + along < k_end) {
                uint at = start + min(row + across, EXTENT - 1) * side(free) + (k_here + along) * side(contract);
                item[j / OF_WORD] |= OF(side(memory)[at]) << (j % OF_WORD * BITS);
            }
        }
#endif
        side(next)[i] = item;
    }
}

void side(keep)(uint turn) {
    [[unroll]] for (uint i = 0; i < SIDE(ITEMS); i++) {
        uvec2 place = side(place)(i);
        pool[BASE + turn * SIDE(TILE) + place.x * SIDE(ROW) + place.y] = side(next)[i];
    }
}
#undef OF
#undef BOTH
