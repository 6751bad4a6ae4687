// What the parts did not hold: the counts of workgroups that compute everything anew.
layout(set = 0, binding = COUNTS, std430) writeonly restrict buffer Counts { uint counts[]; };

// Whether a sum tells of that: it is infinite or NaN, or so small that products of parts may have been lost beneath the denormals.
bool is_unfit(float sum) {
    uint size = floatBitsToUint(sum) & 0x7fffffffu;
    return size - 1 < 0x0dffffffu || size >= 0x7f800000u; // 2^-99
}

// Nothing is to be computed anew so far.
void compute_nothing_anew() {
    for (uint i = 0; i < 3; ++i) nxv_store(counts, i, 0);
}

// The host takes as many as there are.
void compute_anew() {
    for (uint i = 0; i < 3; ++i) nxv_store(counts, i, 0xffffffffu);
}
