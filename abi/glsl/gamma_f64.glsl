// The logarithm of the gamma function in f64 for positive arguments, and differences of it that would cancel.
// Methods and coefficients are those of fdlibm's e_lgamma_r.c: Copyright (C) 1993 by Sun Microsystems, Inc. Permission
// to use, copy, modify, and distribute it is freely granted, provided that this notice is preserved.
// Each function states a bound of its error, which host/tool/tests/gamma.rs keeps on lavapipe (Mesa 25.0, LLVM 19).
#ifndef NXV_GAMMA_F64_GLSL
#define NXV_GAMMA_F64_GLSL
#include "math_f64.glsl"

// log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2 for x >= 8: Stirling's series, fitted.
double nxv_stirling(double x) {
    double inverse = nxv_divide(1.0lf, x);
    double square = inverse * inverse;
    precise double tail = inverse * (0.08333333333333297lf + square * (-0.0027777777772877554lf + square *
        (0.0007936505586430196lf + square * (-0.00059518755745034lf + square * (0.0008363399189962821lf + square *
        -0.0016309293409657527lf)))));
    return tail;
}

// log(gamma(2 - y)) for 0 <= y < 0.27.
double nxv_lgamma_near_two(double y) {
    double square = y * y;
    precise double even = 0.07721566490153287lf + square * (0.06735230105312927lf + square * (0.007385550860814029lf +
        square * (0.0011927076318336207lf + square * (0.00022086279071390839lf + square * 2.5214456545125733e-05lf))));
    precise double odd = 0.3224670334241136lf + square * (0.020580808432516733lf + square * (0.0028905138367341563lf +
        square * (0.0005100697921535113lf + square * (0.00010801156724758394lf + square * 4.4864094961891516e-05lf))));
    precise double result = (y * even + square * odd) - 0.5lf * y;
    return result;
}

// log(gamma(1.4616 + y)) for |y| < 0.27: around the minimum.
double nxv_lgamma_near_minimum(double y) {
    double square = y * y;
    double cube = square * y;
    precise double first = 0.48383612272381005lf + cube * (-0.032788541075985965lf + cube * (0.006100538702462913lf +
        cube * (-0.0014034646998923284lf + cube * 0.00031563207090362595lf)));
    precise double second = -0.1475877229945939lf + cube * (0.01797067508118204lf + cube * (-0.0036845201678113826lf +
        cube * (0.000881081882437654lf + cube * -0.00031275416837512086lf)));
    precise double third = 0.06462494023913339lf + cube * (-0.010314224129834144lf + cube * (0.0022596478090061247lf +
        cube * (-0.0005385953053567405lf + cube * 0.0003355291926355191lf)));
    precise double result = -0.12148629053584961lf + (square * first - (-3.638676997039505e-18lf - cube * (second + y *
        third)));
    return result;
}

// log(gamma(1 + y)) for -0.1 < y < 0.24.
double nxv_lgamma_near_one(double y) {
    precise double above = y * (-0.07721566490153287lf + y * (0.6328270640250934lf + y * (1.4549225013723477lf + y *
        (0.9777175279633727lf + y * (0.22896372806469245lf + y * 0.013381091853678766lf)))));
    precise double below = 1.0lf + y * (2.4559779371304113lf + y * (2.128489763798934lf + y * (0.7692851504566728lf + y
        * (0.10422264559336913lf + y * 0.003217092422824239lf))));
    precise double result = nxv_divide(above, below) - 0.5lf * y;
    return result;
}

// log(gamma(2 + y)) for 0 <= y < 1.
double nxv_lgamma_above_two(double y) {
    precise double above = y * (-0.07721566490153287lf + y * (0.21498241596060885lf + y * (0.325778796408931lf + y *
        (0.14635047265246445lf + y * (0.02664227030336386lf + y * (0.0018402845140733772lf + y *
        3.194753265841009e-05lf))))));
    precise double below = 1.0lf + y * (1.3920053346762105lf + y * (0.7219355475671381lf + y * (0.17193386563280308lf +
        y * (0.01864591917156529lf + y * (0.0007779424963818936lf + y * 7.326684307446256e-06lf)))));
    precise double result = 0.5lf * y + nxv_divide(above, below);
    return result;
}

// log(gamma(x)); NaN for x < 0. 1.5 ulp.
double nxv_lgamma(double x) {
    if (!(x >= 0.0lf)) return NXV_NAN64;
    if (x == 0.0lf || x >= NXV_INF64) return NXV_INF64;
    if (x < 8.470329472543003e-22lf) return -nxv_log(x);
    precise double result;
    if (x <= 0.9lf) {
        // log(gamma(x)) = log(gamma(x + 1)) - log(x)
        double shifted = x >= 0.7316lf ? nxv_lgamma_near_two(1.0lf - x)
            : x >= 0.2316321lf ? nxv_lgamma_near_minimum(x - 0.46163214496836225lf) : nxv_lgamma_near_one(x);
        result = shifted - nxv_log(x);
    } else if (x < 2.0lf) {
        result = x >= 1.7316lf ? nxv_lgamma_near_two(2.0lf - x)
            : x >= 1.2316321lf ? nxv_lgamma_near_minimum(x - 1.4616321449683622lf) : nxv_lgamma_near_one(x - 1.0lf);
    } else if (x < 8.0lf) {
        double product = 1.0lf;
        for (; x >= 3.0lf; x -= 1.0lf) product *= x - 1.0lf;
        result = nxv_lgamma_above_two(x - 2.0lf) + nxv_log(product);
    } else {
        result = (x - 0.5lf) * (nxv_log(x) - 1.0lf) + (0.4189385332046727lf + nxv_stirling(x));
    }
    return result;
}

// log(gamma(x + 1/2)) - log(gamma(x)) for x > 0: for large x its series in 1/x. 8 ulp of max(1, |result|).
double nxv_lgamma_half_step(double x) {
    precise double result;
    if (x < 8.0lf) {
        result = nxv_lgamma(x + 0.5lf) - nxv_lgamma(x);
    } else {
        double inverse = nxv_divide(1.0lf, x);
        double square = inverse * inverse;
        result = 0.5lf * nxv_log(x) - inverse * (0.125lf + square * (-0.005208333333333333lf + square * (0.0015625lf +
            square * (-0.0011858258928571428lf + square * (0.001681857638888889lf + square * (-0.0038341175426136365lf
            + square * (0.012819730318509616lf - square * 0.059100405375162764lf)))))));
    }
    return result;
}

// x log(x) - x - log(gamma(x)) for x > 0. 6 ulp of max(1, |result|).
double nxv_lgamma_peak(double x) {
    precise double result;
    if (x < 8.0lf) {
        result = x * (nxv_log(x) - 1.0lf) - nxv_lgamma(x);
    } else {
        result = 0.5lf * nxv_log(x) - 0.9189385332046727lf - nxv_stirling(x);
    }
    return result;
}

// log(gamma(a) gamma(b) / gamma(a + b)) for a, b > 0. 2 ulp of max(1, |result|).
double nxv_lbeta(double a, double b) {
    double small = min(a, b);
    double large = max(a, b);
    precise double sum = small + large;
    precise double result;
    if (large < 8.0lf) {
        result = nxv_lgamma(small) + nxv_lgamma(large) - nxv_lgamma(sum);
    } else {
        // log(gamma(large)) - log(gamma(sum)), by Stirling's formula for both.
        double growth = (large - 0.5lf) * nxv_log1p(nxv_divide(small, large));
        result = nxv_lgamma(small) - growth - small * (nxv_log(sum) - 1.0lf) + (nxv_stirling(large) -
            nxv_stirling(sum));
    }
    return result;
}
#endif
