// Jacobi's rotations in the order of Brent and Luk (1985).

// The pair number i of a round, of 2 * half indices.
uvec2 pair_of(uint i, uint round, uint half_count) {
    uint cycle = 2 * half_count - 1;
    uvec2 slot = uvec2(i == 0 ? 0 : i - 1, cycle - 1 - i);
    uvec2 first = (slot + uvec2(cycle - round % cycle)) % cycle;
    uvec2 index = uvec2(
        first.x + 1 < half_count ? first.x + 1 : 3 * half_count - 2 - first.x,
        first.y + 1 < half_count ? first.y + 1 : 3 * half_count - 2 - first.y);
    return uvec2(i == 0 ? 0 : index.x, index.y);
}

// Cosine, sine and tangent that make 0 of `off` between the elements `top` and `bottom` of a diagonal.
struct Rotation { WORK c; WORK s; WORK t; };
const Rotation NONE = Rotation(WORK(1), WORK(0), WORK(0));

Rotation rotation(WORK top, WORK bottom, WORK off) {
    WORK tau = (bottom - top) / (WORK(2) * off);
    WORK root = sqrt(WORK(1) + tau * tau);
    WORK t = WORK(1) / (tau + (tau >= WORK(0) ? root : -root));
    WORK c = WORK(1) / sqrt(WORK(1) + t * t);
    return Rotation(c, t * c, t);
}

bool is_finite(WORK x) { return abs(x) <= WORK(3.4028234663852886e38) || abs(x) < WORK(2) * abs(x); }
