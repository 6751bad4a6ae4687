// Buckets of places. A bucket has pieces of PIECE neighbours that lie far apart, so that updates which are close to each other,
// or some power of two apart, go to many buckets. A record is an update on its way: its place within the bucket times
// 2^ROW_BITS plus its number in the chunk, and its bits. Whoever includes this has some in shared memory, in `sorted`.
#ifndef DEAL_GLSL
#define DEAL_GLSL

uint bucket_of(uint place) {
    uint piece = place / PIECE;
    return (piece ^ (piece >> BUCKET_BITS)) & (BUCKETS - 1u);
}

uint within_bucket(uint place) {
    return (place / PIECE >> BUCKET_BITS) * PIECE + place % PIECE;
}

uint place_in(uint bucket, uint within) {
    uint high = within / PIECE;
    uint low = bucket ^ (high & (BUCKETS - 1u));
    return (high << BUCKET_BITS | low) * PIECE + within % PIECE;
}

#define KEY uvec2
bool is_below(KEY a, KEY b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }

// The sum of `own` of this invocation and those before it, by way of `sorted`; that of all of them is in `all`. There are
// barriers within.
uint sum_before(uint own, out uint all) {
    uint at = gl_LocalInvocationIndex;
    uint sum = own;
    uint turn = 0u;
    sorted[at][turn] = sum;
    [[unroll]] for (uint apart = 1u; apart < WORKGROUP; apart *= 4u) {
        barrier(); // the sums of the last round are there, and those of the one before were read
        [[unroll]] for (uint k = 1u; k < 4u; ++k) {
            if (at >= k * apart) sum += sorted[at - k * apart][turn];
        }
        turn ^= 1u;
        sorted[at][turn] = sum;
    }
    barrier(); // the last sums are there
    all = sorted[WORKGROUP - 1u][turn];
    return sum - own;
}
#endif
