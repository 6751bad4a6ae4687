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

// Cosine, sine and tangent that make 0 of `off` between the elements `top` and `bottom` of a diagonal. Of complex numbers the
// sine has the direction of the conjugate of `off`.
struct Rotation { REAL c; WORK s; REAL t; };
const Rotation NONE = Rotation(REAL(1), WORK(0), REAL(0));

// How far `off` is from 0, in its own direction if there is one.
#ifdef WORK_IS_COMPLEX
#define EXTENT_OF(off) magnitude(off)
#else
#define EXTENT_OF(off) (off)
#endif

// What makes a number real and not negative.
#ifdef WORK_IS_COMPLEX
#define TURN_OF(x) conjugate(phase(x))
#else
#define TURN_OF(x) ((x) < WORK(0) ? WORK(-1) : WORK(1))
#endif

Rotation rotation(REAL top, REAL bottom, WORK off) {
    REAL extent = EXTENT_OF(off);
    REAL tau = (bottom - top) / (REAL(2) * extent);
    REAL root = sqrt(REAL(1) + tau * tau);
    REAL t = REAL(1) / (tau + (tau >= REAL(0) ? root : -root));
    REAL c = REAL(1) / sqrt(REAL(1) + t * t);
#ifdef WORK_IS_COMPLEX
    return Rotation(c, t * c * (conjugate(off) / extent), t);
#else
    return Rotation(c, t * c, t);
#endif
}

bool is_finite(REAL x) { return abs(x) <= REAL(3.4028234663852886e38) || abs(x) < REAL(2) * abs(x); }
