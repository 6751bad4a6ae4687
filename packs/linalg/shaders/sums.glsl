// Sums over the invocations of a workgroup, the same for each of them: parts become LANES sums, and these one. ROWS sums go at
// once.
#if TILE < 16
#define LANES TILE
#else
#define LANES 16
#endif
#ifndef ROWS
#define ROWS 1
#endif

#ifdef WORK_IS_F64
#define vec4_of_work dvec4
#else
#define vec4_of_work vec4
#endif

shared WORK parts[ROWS * TILE];
shared WORK few[ROWS * LANES];

// Sums of parts and of what is left of them, in four so that additions need not wait for each other.
WORK sum_of_parts(uint first) {
    vec4_of_work sums = vec4_of_work(WORK(0));
    for (uint i = 0; i < TILE; i += 4 * LANES) {
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (i + j * LANES < TILE) sums[j] += parts[first + i + j * LANES];
        }
    }
    return (sums.x + sums.y) + (sums.z + sums.w);
}

WORK sum_of_few(uint first) {
    vec4_of_work sums = vec4_of_work(WORK(0));
    [[unroll]] for (uint i = 0; i < LANES; i++) sums[i % 4] += few[first + i];
    return (sums.x + sums.y) + (sums.z + sums.w);
}

void totals(inout WORK sums[ROWS]) {
    uint own = gl_LocalInvocationIndex;
    [[unroll]] for (uint row = 0; row < ROWS; row++) parts[row * TILE + own] = sums[row];
    barrier(); // every part is there
    for (uint at = own; at < ROWS * LANES; at += TILE) few[at] = sum_of_parts(at / LANES * TILE + at % LANES);
    barrier(); // few sums are left, and parts may change
    [[unroll]] for (uint row = 0; row < ROWS; row++) sums[row] = sum_of_few(row * LANES);
}

WORK total(WORK part) {
    uint own = gl_LocalInvocationIndex;
    parts[own] = part;
    barrier(); // every part is there
    if (own < LANES) few[own] = sum_of_parts(own);
    barrier(); // few sums are left, and parts may change
    return sum_of_few(0);
}
