// Elementary functions of f32 for results that are rounded to f16, bf16 or less, with the special values of C's libm. They
// take the device's own exponential, logarithm, quotients and roots, which Vulkan lets be wrong by some ulp, and are within
// 2^-16 of the value, so that a result of f16 is within 0.53 ulp. Polynomials are minimax fits. What the fast way does not
// serve, such as angles beyond 2^16 or denormals, goes the way of f32: branches that hardly any subgroup takes.
#ifndef NXV_MATH_NARROW_GLSL
#define NXV_MATH_NARROW_GLSL

#include "math_f32.glsl"

// 2^x, for any x but NaN.
float nxv_narrow_exp2(float x) {
    float result = x >= 128.0 ? NXV_INF : exp2(x);
    return x < -150.0 ? 0.0 : result;
}

float nxv_narrow_exp(float x) {
    return nxv_is_nan(x) ? x : nxv_narrow_exp2(x * 1.442695);
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
    float result = abs(x) < 0.25 ? nxv_narrow_log_near(x) : NXV_LN2 * log2(1.0 + x);
    return x > -1.0 ? result : x == -1.0 ? -NXV_INF : NXV_NAN;
}

// With log2(a) to 22 bits, polynomial in f = m - 1 for a = 2^k m.
float nxv_narrow_pow(float a, float b) {
    uint magnitude = floatBitsToUint(a) & 0x7fffffffu;
    if (magnitude - 0x800000u >= 0x7f000000u || !(abs(b) < NXV_INF)) return nxv_pow(a, b);
    int k = int(magnitude - 0x3f3504f3u) >> 23;
    float f = uintBitsToFloat(magnitude - uint(k << 23)) - 1.0;
    float log_a = float(k) + f * (1.442695 + f * (-0.72134733 + f * (0.48091063 + f * (-0.36070368 + f * (
        0.28791624 + f * (-0.23894483 + f * (0.21571562 + f * (-0.20726973 + f * 0.125837))))))));
    float result = nxv_narrow_exp2(b * log_a);
    if (floatBitsToInt(a) < 0) {
        bool odd = abs(b) < 16777216.0 && (int(b) & 1) == 1;
        result = trunc(b) != b ? NXV_NAN : odd ? -result : result;
    }
    return b == 2.0 ? a * a : result;
}

// (-1)^turns sin(r) for |r| <= pi/2.
float nxv_narrow_sin_near(float r, uint turns) {
    float z = r * r;
    float result = r * (1.0 + z * (-0.16665848 + z * (0.008314198 + z * -1.8539633e-4)));
    return uintBitsToFloat(floatBitsToUint(result) ^ (turns << 31));
}

// x - n pi, with exact products of n and the first two parts of pi (Cody and Waite 1980): 2 n is whole and below 2^16.
float nxv_narrow_reduce(float x, float n) {
    return nxv_less(nxv_less(nxv_less(x, n, 3.140625), n, 9.651184e-4), n, 2.5351817e-6);
}

float nxv_narrow_sin(float x) {
    if (!(abs(x) < 65536.0)) return nxv_sin(x);
    int turns;
    float n = nxv_whole(nxv_fma(x, 0.31830987, 0.0), turns);
    return nxv_narrow_sin_near(nxv_narrow_reduce(x, n), uint(turns));
}

// -(-1)^n sin(x - (n + 1/2) pi).
float nxv_narrow_cos(float x) {
    if (!(abs(x) < 65536.0)) return nxv_cos(x);
    int turns;
    float n = nxv_whole(nxv_fma(x, 0.31830987, -0.5), turns) + 0.5;
    return nxv_narrow_sin_near(nxv_narrow_reduce(x, n), uint(turns + 1));
}

// By quarter turns; a ratio of polynomials.
float nxv_narrow_tan(float x) {
    if (!(abs(x) < 65536.0)) return nxv_tan(x);
    int quadrant;
    float n = nxv_whole(nxv_fma(x, 0.63661975, 0.0), quadrant);
    float r = nxv_narrow_reduce(x, 0.5 * n);
    float z = r * r;
    float s = r * (1.0 + z * -0.09578121);
    float c = 1.0 + z * (-0.42911506 + z * 0.00970946);
    bool odd = (quadrant & 1) == 1;
    return (odd ? -c : s) / (odd ? s : c);
}

// (asin(x) - x) / x for |x| <= 1/2, from z = x^2.
float nxv_narrow_asin_tail(float z) {
    return z * (0.16680306 + z * (0.07187669 + z * 0.064173475));
}

// Beyond 1/2, pi/2 - 2 asin(sqrt((1 - x) / 2)).
float nxv_narrow_asin(float x) {
    float magnitude = abs(x);
    bool far = magnitude > 0.5;
    float z = far ? 0.5 - 0.5 * magnitude : x * x;
    float s = far ? sqrt(z) : magnitude;
    float angle = s * (1.0 + nxv_narrow_asin_tail(z));
    angle = far ? NXV_HALF_PI.x - 2.0 * angle : angle;
    return magnitude <= 1.0 ? nxv_with_sign(angle, x) : NXV_NAN;
}

// sqrt(1 - |x|) times a polynomial, or pi minus that.
float nxv_narrow_acos(float x) {
    float magnitude = abs(x);
    float angle = sqrt(1.0 - magnitude) * (1.5707874 + magnitude * (-0.2141108 + magnitude * (0.08459656 + magnitude *
        (-0.035643414 + magnitude * 0.008591797))));
    angle = x < 0.0 ? NXV_PI.x - angle : angle;
    return magnitude <= 1.0 ? angle : NXV_NAN;
}

// atan(x) for 0 <= x <= 1, or pi/2 minus it.
float nxv_narrow_atan_near(float x, bool complement) {
    float z = x * x;
    float angle = x * (1.0 + z * (-0.333089 + z * (0.19618309 + z * (-0.12251499 + z * (0.05877023 + z *
        -0.01395509)))));
    return complement ? NXV_HALF_PI.x - angle : angle;
}

float nxv_narrow_atan(float x) {
    float magnitude = abs(x);
    bool far = magnitude > 1.0;
    return nxv_with_sign(nxv_narrow_atan_near(far ? 1.0 / magnitude : magnitude, far), x);
}

// Of the ratio of the smaller to the larger where these are from 2^-62 to 2^63, or the smaller is 0.
float nxv_narrow_atan2(float y, float x) {
    uint across = floatBitsToUint(x) & 0x7fffffffu;
    uint up = floatBitsToUint(y) & 0x7fffffffu;
    uint small = min(across, up);
    uint large = max(across, up);
    if (large - 0x20800000u >= 0x3e800000u || small - 1u < 0x207fffffu) return nxv_atan2(y, x);
    float angle = nxv_narrow_atan_near(uintBitsToFloat(small) / uintBitsToFloat(large), up > across);
    return nxv_with_sign(floatBitsToInt(x) < 0 ? NXV_PI.x - angle : angle, y);
}

// Odd polynomial, then log(x + sqrt(x^2 + 1)), by halves so that it does not overflow.
float nxv_narrow_asinh(float x) {
    float magnitude = abs(x);
    float square = x * x;
    float near = x * (1.0 + square * (-0.16652493 + square * 0.06977612));
    float root = magnitude > 1e9 ? magnitude : sqrt(square + 1.0);
    precise float mean = 0.5 * magnitude + 0.5 * root;
    float far = NXV_LN2 + NXV_LN2 * log2(mean);
    return magnitude < 0.3 ? near : nxv_with_sign(far, x);
}

// Odd polynomial, then log((1 + x) / (1 - x)) / 2.
float nxv_narrow_atanh(float x) {
    float magnitude = abs(x);
    float square = x * x;
    float near = x * (1.0 + square * (0.33307302 + square * 0.21317267));
    float far = 0.5 * NXV_LN2 * log2((1.0 + magnitude) / (1.0 - magnitude));
    far = magnitude < 1.0 ? far : magnitude == 1.0 ? NXV_INF : NXV_NAN;
    return magnitude < 0.25 ? near : nxv_with_sign(far, x);
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

// A ratio of polynomials in x^2, up to what is next to 1 in f16; 1 beyond, and nowhere more: what is made of 1 minus it has its sign.
float nxv_narrow_erf(float x) {
    float inside = abs(x) > 3.4 ? nxv_with_sign(3.4, x) : x;
    float z = inside * inside;
    float above = 1.1283752 + z * (0.15598230 + z * (0.042853508 + z * 7.2869244e-4));
    float below = 1.0 + z * (0.47155131 + z * (0.095134163 + z * 0.0091279478));
    float result = inside * (above / below);
    return abs(result) > 1.0 ? nxv_with_sign(1.0, result) : result;
}

// e^-x^2 times a polynomial in t = 1 / (1 + 0.6 |x|), or 2 minus that. Within 2^-14 beyond 4, where there is bf16 alone.
float nxv_narrow_erfc(float x) {
    float t = 1.0 / (1.0 + 0.6 * abs(x));
    float decay = exp2(-1.442695 * min(x * x, 110.0));
    float tail = decay * t * (0.33738863 + t * (0.3564104 + t * (0.16965504 + t * (0.47160307 + t * (-0.44505915 + t *
        0.10999429)))));
    return x < 0.0 ? 2.0 - tail : tail;
}

// Polynomial in log2(1 - x^2), up to what is next to 1 in f16.
float nxv_narrow_erf_inv(float x) {
    if (!(abs(x) < 0.9996)) return nxv_erf_inv(x);
    float w = log2((1.0 - x) * (1.0 + x));
    return x * (0.8862288 + w * (-0.1608009 + w * (0.0055744876 + w * (7.824029e-4 + w * (-3.690057e-5 + w * (
        -1.2025023e-5 + w * (-8.4241776e-7 + w * -2.0654639e-8)))))));
}
#endif
