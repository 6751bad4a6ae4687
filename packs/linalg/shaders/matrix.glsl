// What the shaders of matrices share. WORK is the type of a workspace, REAL that of its parts, SUM the one of sums. A complex
// number is a vector of two, and four of them are the columns of a matrix.
#include "dtype.glsl"
#include "tensor.glsl"

#ifdef WORK_IS_COMPLEX
// Quotients as Smith (1962) has them; magnitudes of f64 are scaled by the larger part, since squares could overflow.
#define COMPLEX_FIELD(type, pair, fours) \
    type real_of(pair x) { return x.x; } \
    pair of_real(type x) { return pair(x, 0); } \
    pair conjugate(pair x) { return pair(x.x, -x.y); } \
    type square_of(pair x) { return x.x * x.x + x.y * x.y; } \
    pair times(pair x, pair y) { return pair(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); } \
    fours times(pair x, fours y) { return fours(times(x, y[0]), times(x, y[1]), times(x, y[2]), times(x, y[3])); } \
    pair over(pair x, pair y) { \
        bool is_wide = abs(y.x) >= abs(y.y); \
        type large = is_wide ? y.x : y.y, ratio = (is_wide ? y.y : y.x) / large; \
        type below = large + (is_wide ? y.y : y.x) * ratio; \
        pair above = is_wide ? pair(x.x + x.y * ratio, x.y - x.x * ratio) : pair(x.x * ratio + x.y, x.y * ratio - x.x); \
        return above / below; \
    } \
    type scaled_magnitude(pair x) { \
        pair parts = abs(x); \
        type large = max(parts.x, parts.y), ratio = min(parts.x, parts.y) / large; \
        bool is_plain = large == type(0) || nxv_is_nan(parts.x) || nxv_is_nan(parts.y); \
        return is_plain ? parts.x + parts.y : large * sqrt(type(1) + ratio * ratio); \
    } \
    bool is_nan(pair x) { return nxv_is_nan(x.x) || nxv_is_nan(x.y); }
COMPLEX_FIELD(float, vec2, mat4x2)
#ifdef NXV_HAS_FP64
COMPLEX_FIELD(double, dvec2, dmat4x2)
double magnitude(dvec2 x) { return scaled_magnitude(x); }
// Rounded once, so that what is alike stays alike.
float magnitude(vec2 x) { return float(sqrt(square_of(dvec2(x)))); }
#else
float magnitude(vec2 x) { return scaled_magnitude(x); }
#endif
const WORK ONE = WORK(1, 0);
#define TIMES(x, y) times(x, y)
#define OVER(x, y) over(x, y)
#define CONJUGATE(x) conjugate(x)
#define REAL_OF(x) real_of(x)
#define OF_REAL(x) of_real(x)
#define SQUARE(x) square_of(x)
#define MAGNITUDE(x) magnitude(x)
#define IS_NAN(x) is_nan(x)
#define SHIFTED(four) WORK4(four[1], four[2], four[3], four[0])
#define ROUNDED_PRODUCT(x, y) nxv_complex_product(x, y)
// A number of magnitude 1 in the same direction; 1 for 0.
WORK phase(WORK x) {
    REAL size = MAGNITUDE(x);
    return size == REAL(0) ? ONE : x / size;
}
#else
const WORK ONE = WORK(1);
#define TIMES(x, y) ((x) * (y))
#define OVER(x, y) ((x) / (y))
#define CONJUGATE(x) (x)
#define REAL_OF(x) (x)
#define OF_REAL(x) (x)
#define SQUARE(x) ((x) * (x))
#define MAGNITUDE(x) abs(x)
#define IS_NAN(x) nxv_is_nan(x)
#define SHIFTED(four) (four).yzwx
WORK ROUNDED_PRODUCT(WORK x, WORK y) {
    precise WORK product = x * y;
    return product;
}
#endif

REAL not_a_number() { return REAL(uintBitsToFloat(0x7fc00000u)); }

// What the workgroup has stored so far, in buffers too, is there for all of it.
void meet() {
    groupMemoryBarrier();
    barrier();
}
