// What the expressions of pack.toml may use beside the functions of the math headers.
#ifndef FUNCTIONS_GLSL
#define FUNCTIONS_GLSL

#include "dtype.glsl"
#ifdef NXV_NEEDS_FP64
#include "gamma_f64.glsl"
#define NOT_A_NUMBER NXV_NAN64
const double LOG_PI = 1.1447298858494002lf;
const double HALF_LOG_TWO_PI = 0.9189385332046728lf;
const double HALF_LOG_HALF_PI = 0.22579135264472744lf;
const double LARGE = 1073741824.0lf; // its square plus 1 is its square
#else
#include "gamma_f32.glsl"
#define NOT_A_NUMBER NXV_NAN
const float LOG_PI = 1.1447299;
const float HALF_LOG_TWO_PI = 0.9189385;
const float HALF_LOG_HALF_PI = 0.22579135;
const float LARGE = 32768.0;
#endif

REAL over(REAL a, REAL b) { return nxv_divide(a, b); }

// log(1 + v^2), also where v^2 is infinite.
REAL log_one_plus_square(REAL v) {
    if (abs(v) > LARGE) return REAL(2) * nxv_log(abs(v));
    precise REAL square = v * v;
    return nxv_log1p(square);
}

// v / (1 + v^2), also where v^2 is infinite.
REAL over_one_plus_square(REAL v) {
    if (abs(v) > LARGE) return over(REAL(1), v);
    precise REAL below = REAL(1) + v * v;
    return over(v, below);
}
#endif
