// The logarithm of the gamma function in f32 for positive arguments, and differences of it that would cancel.
// Methods and coefficients are those of fdlibm's e_lgamma_r.c: Copyright (C) 1993 by Sun Microsystems, Inc. Permission
// to use, copy, modify, and distribute it is freely granted, provided that this notice is preserved.
// Each function states a bound of its error, which host/tool/tests/gamma.rs keeps on lavapipe (Mesa 25.0, LLVM 19).
#ifndef NXV_GAMMA_F32_GLSL
#define NXV_GAMMA_F32_GLSL
#include "math_f32.glsl"

// log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2 for x >= 3: Stirling's series, fitted.
float nxv_stirling(float x) {
    float inverse = nxv_divide(1.0, x);
    float square = inverse * inverse;
    precise float tail = inverse * (0.083333333 + square * (-0.0027777778 + square * (0.0007936506 + square *
        (-0.00059518756 + square * (0.0008363399 + square * -0.0016309293)))));
    return tail;
}

// log(gamma(2 - y)) for 0 <= y < 0.27.
float nxv_lgamma_near_two(float y) {
    float square = y * y;
    precise float even = 0.077215665 + square * (0.0673523 + square * (0.007385551 + square * (0.00119270763 + square *
        (0.00022086279 + square * 2.5214457e-5))));
    precise float odd = 0.32246703 + square * (0.020580808 + square * (0.0028905138 + square * (0.0005100698 + square *
        (0.00010801157 + square * 4.4864095e-5))));
    precise float result = (y * even + square * odd) - 0.5 * y;
    return result;
}

// log(gamma(1.4616 + y)) for |y| < 0.27: around the minimum.
float nxv_lgamma_near_minimum(float y) {
    float square = y * y;
    float cube = square * y;
    precise float first = 0.4838361 + cube * (-0.03278854 + cube * (0.0061005387 + cube * (-0.0014034647 + cube *
        0.00031563207)));
    precise float second = -0.14758772 + cube * (0.017970675 + cube * (-0.0036845202 + cube * (0.00088108188 + cube *
        -0.00031275417)));
    precise float third = 0.06462494 + cube * (-0.010314224 + cube * (0.0022596478 + cube * (-0.0005385953 + cube *
        0.00033552919)));
    precise float result = -0.12148629 + (square * first - (-7.5347992e-10 - cube * (second + y * third)));
    return result;
}

// log(gamma(1 + y)) for -0.1 < y < 0.24.
float nxv_lgamma_near_one(float y) {
    precise float above = y * (-0.077215665 + y * (0.63282706 + y * (1.4549225 + y * (0.9777175 + y * (0.22896373 + y *
        0.013381092)))));
    precise float below = 1.0 + y * (2.455978 + y * (2.1284898 + y * (0.76928515 + y * (0.10422265 + y *
        0.0032170924))));
    precise float result = nxv_divide(above, below) - 0.5 * y;
    return result;
}

// log(gamma(2 + y)) for 0 <= y < 1.
float nxv_lgamma_above_two(float y) {
    precise float above = y * (-0.077215665 + y * (0.21498242 + y * (0.325778796 + y * (0.14635047 + y * (0.02664227 +
        y * (0.00184028451 + y * 3.1947533e-5))))));
    precise float below = 1.0 + y * (1.3920053 + y * (0.72193555 + y * (0.171933866 + y * (0.01864592 + y *
        (0.0007779425 + y * 7.326684e-6)))));
    precise float result = 0.5 * y + nxv_divide(above, below);
    return result;
}

// log(gamma(x)); NaN for x < 0. 2.5 ulp.
float nxv_lgamma(float x) {
    if (!(x >= 0.0)) return NXV_NAN;
    if (x == 0.0 || x >= NXV_INF) return NXV_INF;
    if (x < 4.7683716e-7) return -nxv_log(x);
    precise float result;
    if (x <= 0.9) {
        // log(gamma(x)) = log(gamma(x + 1)) - log(x)
        float shifted = x >= 0.7316 ? nxv_lgamma_near_two(1.0 - x)
            : x >= 0.2316321 ? nxv_lgamma_near_minimum(x - 0.46163214) : nxv_lgamma_near_one(x);
        result = shifted - nxv_log(x);
    } else if (x < 2.0) {
        result = x >= 1.7316 ? nxv_lgamma_near_two(2.0 - x)
            : x >= 1.2316321 ? nxv_lgamma_near_minimum(x - 1.4616321) : nxv_lgamma_near_one(x - 1.0);
    } else if (x < 8.0) {
        float product = 1.0;
        for (; x >= 3.0; x -= 1.0) product *= x - 1.0;
        result = nxv_lgamma_above_two(x - 2.0) + nxv_log(product);
    } else {
        result = (x - 0.5) * (nxv_log(x) - 1.0) + (0.418938533 + nxv_stirling(x));
    }
    return result;
}

// log(gamma(x + 1/2)) - log(gamma(x)) for x > 0: for large x its series in 1/x. 2 ulp of max(1, |result|).
float nxv_lgamma_half_step(float x) {
    precise float result;
    if (x < 4.0) {
        result = nxv_lgamma(x + 0.5) - nxv_lgamma(x);
    } else {
        float inverse = nxv_divide(1.0, x);
        float square = inverse * inverse;
        result = 0.5 * nxv_log(x) - inverse * (0.125 + square * (-0.0052083333 + square * (0.0015625 + square *
            (-0.0011858259 + square * 0.0016818576))));
    }
    return result;
}

// x log(x) - x - log(gamma(x)) for x > 0. 2 ulp of max(1, |result|).
float nxv_lgamma_peak(float x) {
    precise float result;
    if (x < 3.0) {
        result = x * (nxv_log(x) - 1.0) - nxv_lgamma(x);
    } else {
        result = 0.5 * nxv_log(x) - 0.9189385 - nxv_stirling(x);
    }
    return result;
}

// log(gamma(a) gamma(b) / gamma(a + b)) for a, b > 0. 3 ulp of max(1, |result|).
float nxv_lbeta(float a, float b) {
    float small = min(a, b);
    float large = max(a, b);
    precise float sum = small + large;
    precise float result;
    if (large < 8.0) {
        result = nxv_lgamma(small) + nxv_lgamma(large) - nxv_lgamma(sum);
    } else {
        // log(gamma(large)) - log(gamma(sum)), by Stirling's formula for both.
        float growth = (large - 0.5) * nxv_log1p(nxv_divide(small, large));
        result = nxv_lgamma(small) - growth - small * (nxv_log(sum) - 1.0) + (nxv_stirling(large) - nxv_stirling(sum));
    }
    return result;
}
#endif
