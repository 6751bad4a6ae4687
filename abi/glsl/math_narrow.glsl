// Elementary functions of f32 for results that are rounded to f16, bf16 or less, with the special values of C's libm. They
// take the device's own exponential, which Vulkan lets be wrong by 3 + 2 |x| ulp, and are within 2^-16 of the value, so that
// a result of f16 is within 0.53 ulp. Polynomials are minimax fits.
#ifndef NXV_MATH_NARROW_GLSL
#define NXV_MATH_NARROW_GLSL

#include "math_f32.glsl"

float nxv_narrow_exp(float x) {
    float result = exp2(x * 1.442695);
    result = x > 89.0 ? NXV_INF : result;
    result = x < -104.0 ? 0.0 : result;
    return nxv_is_nan(x) ? x : result;
}

float nxv_narrow_expm1(float x) {
    float near = 0.49999982 + x * (0.16666135 + x * (0.041668978 + x * (0.008402382 + x * 0.0013875483)));
    return abs(x) < 0.5 ? x * (1.0 + x * near) : nxv_narrow_exp(x) - 1.0;
}

// With e^-ln 2, so that what is not infinite is not on the way.
float nxv_narrow_cosh(float x) {
    float half_power = nxv_narrow_exp(abs(x) - NXV_LN2);
    return half_power + 0.25 / half_power;
}

// Whether the built-in root of x is as near as that: a device may take small ones for 0.
bool nxv_is_plain(float x) {
    return floatBitsToUint(x) - 0x0d800000u < 0x72000000u;
}

float nxv_narrow_sqrt(float x) {
    return nxv_is_plain(x) ? sqrt(x) : nxv_sqrt(x);
}

float nxv_narrow_rsqrt(float x) {
    return nxv_is_plain(x) ? inversesqrt(x) : nxv_rsqrt(x);
}

// log(1 + f), for f from sqrt(1/2) - 1 to sqrt(2) - 1.
float nxv_narrow_log_near(float f) {
    float rest = 0.33320862 + f * (-0.24943866 + f * (0.20442244 + f * (-0.1840681 + f * 0.11781136)));
    return f + f * f * (-0.5 + f * rest);
}

float nxv_narrow_log(float x) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) == 0u) return -NXV_INF;
    if (bits >= 0x7f800000u) return bits == 0x7f800000u ? x : NXV_NAN;
    int k;
    float m = nxv_split(x, k);
    return float(k) * NXV_LN2 + nxv_narrow_log_near(m - 1.0);
}

float nxv_narrow_log1p(float x) {
    return abs(x) < 0.25 ? nxv_narrow_log_near(x) : nxv_narrow_log(1.0 + x);
}

float nxv_narrow_sigmoid(float x) {
    float decay = nxv_narrow_exp(-abs(x));
    return (x < 0.0 ? decay : 1.0) / (1.0 + decay);
}

float nxv_narrow_tanh(float x) {
    float square = x * x;
    float near = -0.33332342 + square * (0.13308166 + square * (-0.05194746 + square * 0.01519468));
    float far = 1.0 - 2.0 / (1.0 + nxv_narrow_exp(2.0 * abs(x)));
    return abs(x) < 0.625 ? x * (1.0 + square * near) : nxv_with_sign(far, x);
}

float nxv_narrow_erf(float x) {
    float square = x * x;
    float near = 1.1283791 + square * (-0.37612325 + square * (0.11280179 + square * (-0.026711276 + square * (
        0.0049175052 + square * -5.6312175e-4))));
    float t = 1.0 / (1.0 + 0.5 * abs(x));
    float far = 1.0 - nxv_narrow_exp(-square) * t * (0.31828812 + t * (0.08704984 + t * 0.596378));
    return abs(x) < 1.0 ? x * near : nxv_with_sign(far, x);
}
#endif
