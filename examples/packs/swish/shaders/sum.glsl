// The sum over a workgroup of a power of two, in a fixed order; only the first lane gets it.
shared float sums[WORKGROUP];

float sum_of_workgroup(float mine) {
    uint lane = gl_LocalInvocationID.x;
    sums[lane] = mine;
    for (uint half_way = WORKGROUP / 2; half_way > 0; half_way /= 2) {
        // Orders the sums written so far before they are read by other lanes.
        barrier();
        if (lane < half_way) sums[lane] += sums[lane + half_way];
    }
    return sums[0];
}
