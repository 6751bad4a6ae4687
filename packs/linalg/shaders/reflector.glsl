// Householder's reflection of a row that has `x` beside the diagonal, and `tail` as the sum of the squares behind it.

// Squares of what may be dropped beside 1, and whose own squares still have all their digits.
#ifdef REAL_IS_F64
const WORK NEGLIGIBLE = 1e-250LF;
#else
const WORK NEGLIGIBLE = 1e-24;
#endif

// What becomes of x, what the tail is multiplied with, and the reflection's factor.
struct Reflector { WORK to; WORK factor; WORK tau; };

Reflector reflector_of(WORK x, WORK tail) {
    if (tail <= NEGLIGIBLE) return Reflector(x, WORK(0), WORK(0));
    WORK norm = sqrt(x * x + tail), to = x > WORK(0) ? -norm : norm;
    return Reflector(to, WORK(1) / (x - to), (to - x) / to);
}
