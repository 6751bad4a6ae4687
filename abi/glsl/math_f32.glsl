// Elementary functions of f32 with the special values of C's libm. They need no 64-bit types.
// Polynomials are minimax fits. Each function states its method and its largest error in ulp (units in the last
// place) as measured on lavapipe (Mesa 25.0, LLVM 19), millions of points over the whole domain, against f64 libm.
#ifndef NXV_MATH_F32_GLSL
#define NXV_MATH_F32_GLSL

#define NXV_INF uintBitsToFloat(0x7f800000u)
#define NXV_NAN uintBitsToFloat(0x7fc00000u)
const float NXV_LN2 = 0.6931472;
const float NXV_LN2_HI = 0.69314575; // 15 bits: its product with an exponent is exact
const float NXV_LN2_LO = 1.4286068e-6;
const vec2 NXV_HALF_PI = vec2(1.5707964, -4.371139e-8);
const vec2 NXV_PI = vec2(3.1415927, -8.742278e-8);

// Sums of two floats x + y with |y| at most half an ulp of x: about 48 bits (Dekker 1971, Knuth 4.2.2).
// `precise` forbids the contractions and simplifications that would make the error terms wrong. A shader for a device
// whose fma() rounds once defines NXV_FUSED_FMA; Vulkan promises it of none.

vec2 nxv_sum(float a, float b) {
    precise float sum = a + b;
    precise float part = sum - a;
    precise float error = (a - (sum - part)) + (b - part);
    return vec2(sum, error);
}

// As nxv_sum, for |a| >= |b| or a = 0.
vec2 nxv_sum_ordered(float a, float b) {
    precise float sum = a + b;
    precise float error = b - (sum - a);
    return vec2(sum, error);
}

vec2 nxv_product(float a, float b) {
#ifdef NXV_FUSED_FMA
    precise float product = a * b;
    precise float error = fma(a, b, -product);
#else
    precise float a_high = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u);
    precise float b_high = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u);
    precise float a_low = a - a_high;
    precise float b_low = b - b_high;
    precise float product = a * b;
    precise float error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
    return vec2(product, error);
}

vec2 nxv_sum(vec2 a, vec2 b) {
    vec2 sum = nxv_sum(a.x, b.x);
    precise float low = sum.y + (a.y + b.y);
    return nxv_sum_ordered(sum.x, low);
}

vec2 nxv_product(vec2 a, vec2 b) {
    vec2 product = nxv_product(a.x, b.x);
    precise float low = product.y + (a.x * b.y + a.y * b.x);
    return nxv_sum_ordered(product.x, low);
}

// For a normal inverse of b.
vec2 nxv_ratio(vec2 a, vec2 b) {
    precise float inverse = 1.0 / b.x;
    precise float quotient = a.x * inverse;
    vec2 product = nxv_product(quotient, b.x);
    precise float rest = ((a.x - product.x) - product.y) + (a.y - quotient * b.y);
    return nxv_sum_ordered(quotient, rest * inverse);
}

// For a > 0.
vec2 nxv_root(vec2 a) {
    precise float inverse = inversesqrt(a.x);
    precise float root = a.x * inverse;
    vec2 square = nxv_product(root, root);
    precise float rest = ((a.x - square.x) - square.y) + a.y;
    return nxv_sum_ordered(root, 0.5 * rest * inverse);
}

float nxv_total(vec2 a) {
    precise float total = a.x + a.y;
    return total;
}

// `x` with its sign bit set if that of `sign` is. Not (x & m) | (sign & ~m): Mesa 25.0's lavapipe gives wrong bits
// for that below branches.
float nxv_with_sign(float x, float sign) {
    return uintBitsToFloat(floatBitsToUint(x) | (floatBitsToUint(sign) & 0x80000000u));
}

// x * 2^k for -252 <= k <= 254, in two steps so that neither factor overflows.
float nxv_scale(float x, int k) {
    int half_k = k >> 1;
    precise float scaled = x * intBitsToFloat((half_k + 127) << 23);
    scaled *= intBitsToFloat((k - half_k + 127) << 23);
    return scaled;
}

// m and k with x = m * 2^k and sqrt(1/2) <= m < sqrt(2), for finite x > 0. Integer code, so that it serves for
// denormals where the device flushes them.
float nxv_split(float x, out int k) {
    uint bits = floatBitsToUint(x);
    int shift = max(23 - findMSB(bits), 0);
    bits <<= shift;
    k = (int(bits - 0x3f3504f3u) >> 23);
    float m = uintBitsToFloat(bits - uint(k << 23));
    k -= shift;
    return m;
}

// a / b = result * 2^k for finite a, b > 0 of any size.
vec2 nxv_ratio(float a, float b, out int k) {
    int k_a, k_b;
    float m_a = nxv_split(a, k_a);
    float m_b = nxv_split(b, k_b);
    k = clamp(k_a - k_b, -252, 254);
    return nxv_ratio(vec2(m_a, 0.0), vec2(m_b, 0.0));
}

// Vulkan allows a / b an error of 2.5 ulp, and 1 / b may be flushed: one step of Newton's method. 0.5 ulp.
float nxv_divide(float a, float b) {
    uvec2 magnitude = floatBitsToUint(vec2(a, b)) & 0x7fffffffu;
    // Exponents of at least -32 and below 32: no step overflows or is flushed.
    if (all(lessThan(magnitude - 0x2f800000u, uvec2(0x20000000u)))) {
        return nxv_total(nxv_ratio(vec2(a, 0.0), vec2(b, 0.0)));
    }
    uint sign = (floatBitsToUint(a) ^ floatBitsToUint(b)) & 0x80000000u;
    if (any(greaterThan(magnitude - 1u, uvec2(0x7f7ffffeu)))) {
        // A zero, an infinity or a NaN. The built-in makes NaN of an infinity over a number whose inverse is flushed.
        if (magnitude.x == magnitude.y || any(greaterThan(magnitude, uvec2(0x7f800000u)))) return NXV_NAN;
        return uintBitsToFloat((magnitude.x > magnitude.y ? 0x7f800000u : 0u) | sign);
    }
    int k_a, k_b;
    float m_a = nxv_split(uintBitsToFloat(magnitude.x), k_a);
    float m_b = nxv_split(uintBitsToFloat(magnitude.y), k_b);
    float m = nxv_total(nxv_ratio(vec2(m_a, 0.0), vec2(m_b, 0.0)));
    int k = clamp(k_a - k_b, -252, 254);
    uint bits = floatBitsToUint(m);
    int exponent = int(bits >> 23) + k;
    if (exponent > 0) return uintBitsToFloat(floatBitsToUint(nxv_scale(m, k)) | sign);
    // A denormal: m is not rounded a second time, but what it was rounded from, by the sign of the rest of the division.
    vec2 product = nxv_product(m, m_b);
    precise float rest = (m_a - product.x) - product.y;
    uint doubled = ((bits & 0x7fffffu) | 0x800000u) << 1;
    doubled = rest < 0.0 ? doubled - 1u : doubled | uint(rest > 0.0);
    int shift = min(2 - exponent, 31);
    uint lost = doubled & ((1u << shift) - 1u);
    uint kept = doubled >> shift;
    kept += uint(lost > (1u << (shift - 1)) || (lost == (1u << (shift - 1)) && (kept & 1u) == 1u));
    return uintBitsToFloat(kept | sign);
}

// As nxv_divide, for b = 1 / inverse, both of them powers of two: only what is no normal number has to be rounded. 0.5 ulp. For others
// that are near 1 it is within 1.5 ulp.
float nxv_divide_by(float a, float b, float inverse) {
    precise float result = a * inverse;
    uvec2 magnitude = floatBitsToUint(vec2(a, result)) & 0x7fffffffu;
    return magnitude.y - 0x800000u < 0x7f000000u || magnitude.x == 0u ? result : nxv_divide(a, b);
}

// Newton's method on the built-in function. 0.5 ulp.
float nxv_sqrt(float x) {
    uint bits = floatBitsToUint(x);
    if (bits - 1u >= 0x7f7fffffu) return (bits & 0x7fffffffu) == 0u || bits == 0x7f800000u ? x : NXV_NAN;
    int k;
    float m = nxv_split(x, k);
    return nxv_scale(nxv_total(nxv_root(vec2((k & 1) == 0 ? m : 2.0 * m, 0.0))), k >> 1);
}

// Newton's method on the built-in function. 0.5 ulp.
float nxv_rsqrt(float x) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) == 0u) return nxv_with_sign(NXV_INF, x);
    if (bits >= 0x7f800000u) return bits == 0x7f800000u ? 0.0 : NXV_NAN;
    int k;
    float m = nxv_split(x, k);
    m = (k & 1) == 0 ? m : 2.0 * m;
    precise float guess = inversesqrt(m);
    vec2 unit = nxv_product(nxv_product(guess, guess), vec2(m, 0.0));
    precise float rest = (1.0 - unit.x) - unit.y;
    precise float better = guess + 0.5 * guess * rest;
    return nxv_scale(better, -(k >> 1));
}

// Two steps of Halley's method from the exponent divided by three, one of Newton's with an exact residue. 0.5 ulp.
float nxv_cbrt(float x) {
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    if (bits == 0u || bits >= 0x7f800000u) return x;
    int k;
    float m = nxv_split(uintBitsToFloat(bits), k);
    int third = (k + 3 * 128) / 3 - 128;
    m = nxv_scale(m, k - 3 * third);
    precise float root = uintBitsToFloat(floatBitsToUint(m) / 3u + 709921077u);
    for (int step = 0; step < 2; ++step) {
        float cube = root * root * root;
        root = root * (cube + 2.0 * m) / (2.0 * cube + m);
    }
    vec2 cube = nxv_product(nxv_product(root, root), vec2(root, 0.0));
    precise float rest = (m - cube.x) - cube.y;
    precise float better = root + rest / (3.0 * root * root);
    return nxv_with_sign(nxv_scale(better, third), x);
}

// a * b + c, rounded once where the device does: the same in every shader, whatever stands around it.
float nxv_fma(float a, float b, float c) {
#ifdef NXV_FUSED_FMA
    precise float sum = fma(a, b, c);
#else
    precise float sum = a * b + c;
#endif
    return sum;
}

// a - n * b: where the product is exact, one rounding or two are the same.
float nxv_less(float a, float n, float b) { return nxv_fma(-n, b, a); }

// x rounded to an integer, which is k, for |x| < 2^22: the sum with 3 * 2^22 has it in its last bits. The difference would be the same
// number, but for ties, where NVIDIA's compiler rounds the one up and the other down.
float nxv_whole(float x, out int k) {
    const float shift = 12582912.0;
    precise float shifted = x + shift;
    k = floatBitsToInt(shifted) - floatBitsToInt(shift);
    return float(k);
}

// r and k with x + low = r + k ln 2 and |r| <= ln(2) / 2, for |x| below 2^8.
vec2 nxv_reduce_exp(float x, float low, out int k) {
    precise float scaled = x * 1.442695;
    precise float n = nxv_whole(scaled, k);
    precise float high = x - n * NXV_LN2_HI;
    precise float rest = low - n * NXV_LN2_LO;
    return nxv_sum(high, rest);
}

// e^r - 1 - r.x for r from nxv_reduce_exp.
float nxv_exp_tail(vec2 r) {
    return nxv_fma(r.x * r.x, nxv_fma(r.x, nxv_fma(r.x, nxv_fma(r.x, nxv_fma(r.x, nxv_fma(r.x, 1.9972307e-4,
        0.0013930865), 0.008333177), 0.041666508), 0.16666667), 0.5), nxv_fma(r.x, r.y, r.y));
}

// e^(x.x + x.y) = result * 2^k, to about 30 bits, for |x.x| below 2^8.
vec2 nxv_exp_parts(vec2 x, out int k) {
    vec2 r = nxv_reduce_exp(x.x, x.y, k);
    vec2 sum = nxv_sum_ordered(1.0, r.x);
    precise float low = sum.y + nxv_exp_tail(r);
    return nxv_sum_ordered(sum.x, low);
}

// e^x = result * 2^k with sqrt(1/2) <= result <= sqrt(2), for |x| below 2^8, without branches. Polynomial in
// r = x - k ln 2.
float nxv_exp_mantissa(float x, out int k) {
    precise float scaled = x * 1.442695;
    precise float n = nxv_whole(scaled, k);
    precise float r = (x - n * NXV_LN2_HI) - n * NXV_LN2_LO;
    return 1.0 + (r + r * r * (0.49999994 + r * (0.1666652 + r * (0.041668393 + r * (0.008368781 + r *
        0.0013814466)))));
}

// Mantissa and exponent; both limits lie beyond the last results that are neither infinite nor 0. 1.3 ulp.
float nxv_exp(float x) {
    int k;
    float result = nxv_scale(nxv_exp_mantissa(x, k), k);
    result = x > 89.0 ? NXV_INF : result;
    return x < -104.0 ? 0.0 : result;
}

// As nxv_exp; 2^k (e^r - 1) + (2^k - 1) summed with its error. 0.95 ulp.
float nxv_expm1(float x) {
    if (nxv_is_nan(x) || x == 0.0) return x;
    if (x < -18.0) return -1.0;
    int k;
    vec2 r = nxv_reduce_exp(min(x, 90.0), 0.0, k);
    vec2 base = nxv_sum(1.0, -intBitsToFloat((127 - min(k, 126)) << 23));
    vec2 sum = nxv_sum(base.x, r.x);
    precise float result = sum.x + (sum.y + base.y + nxv_exp_tail(r));
    return nxv_scale(result, k);
}

// 1 / (1 + e^-x), from e^-|x|. 1.5 ulp.
float nxv_sigmoid(float x) {
    if (nxv_is_nan(x)) return x;
    int k;
    float mantissa = nxv_exp_mantissa(-min(abs(x), 110.0), k);
    float decay = nxv_scale(mantissa, k);
    return nxv_total(nxv_ratio(vec2(x < 0.0 ? decay : 1.0, 0.0), nxv_sum_ordered(1.0, decay)));
}

// log of f + 1 + k ln 2, where f + 1 was cut off by `lost`. Polynomial in f.
float nxv_log_sum(float f, float lost, int k) {
    precise float cubic = nxv_fma(f, nxv_fma(f, nxv_fma(f, nxv_fma(f, nxv_fma(f, nxv_fma(f, nxv_fma(f, -0.08330433,
        0.12812026), -0.12940152), 0.14188135), -0.16643599), 0.20001978), -0.2500028), 0.33333325);
    precise float tail = f * f * f * cubic;
    precise float low = float(k) * NXV_LN2_LO + lost;
    vec2 sum = nxv_sum(float(k) * NXV_LN2_HI, f);
    precise float half_square = 0.5 * f * f;
    vec2 head = nxv_sum_ordered(sum.x, -half_square);
    precise float result = head.x + (head.y + (sum.y + (tail + low)));
    return result;
}

// x = 2^k (1 + f), polynomial in f. 0.95 ulp.
float nxv_log(float x) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) == 0u) return -NXV_INF;
    if (bits >= 0x7f800000u) return bits == 0x7f800000u ? x : NXV_NAN;
    int k;
    float m = nxv_split(x, k);
    return nxv_log_sum(m - 1.0, 0.0, k);
}

// log(x) + lost, for normal x > 0.
float nxv_log_normal(float x, float lost) {
    uint bits = floatBitsToUint(x);
    int k = int(bits - 0x3f3504f3u) >> 23;
    return nxv_log_sum(uintBitsToFloat(bits - uint(k << 23)) - 1.0, lost, k);
}

// As nxv_log, with what 1 + x cuts off. 0.95 ulp.
float nxv_log1p(float x) {
    if (nxv_is_nan(x) || x == 0.0 || x >= NXV_INF) return x;
    if (x <= -1.0) return x == -1.0 ? -NXV_INF : NXV_NAN;
    vec2 sum = nxv_sum(1.0, x);
    uint bits = floatBitsToUint(sum.x);
    int k = int(bits - 0x3f3504f3u) >> 23;
    float f = k == 0 ? x : uintBitsToFloat(bits - uint(k << 23)) - 1.0;
    return nxv_log_sum(f, k == 0 ? 0.0 : sum.y / sum.x, k);
}

// log(x.x + x.y) to about 38 bits, for finite x.x > 0. With s = f / (2 + f): 2 s + 2/3 s^3 + polynomial in s^2.
vec2 nxv_log_parts(vec2 x) {
    int k;
    float m = nxv_split(x.x, k);
    float f = m - 1.0;
    vec2 s = nxv_ratio(vec2(f, 0.0), nxv_sum_ordered(2.0, f));
    vec2 square = nxv_product(s, s);
    float tail = square.x * (0.40000015 + square.x * (0.2856215 + square.x * 0.23050955));
    vec2 cubic = nxv_product(nxv_product(square, s), nxv_sum_ordered(0.6666667, tail - 1.9868216e-8));
    vec2 log_m = nxv_sum(2.0 * s, cubic);
    precise float low = float(k) * NXV_LN2_LO + x.y / x.x;
    return nxv_sum(nxv_sum(vec2(float(k) * NXV_LN2_HI, 0.0), vec2(low, 0.0)), log_m);
}

// e^(b log a) with log a to 38 bits, and C's special values. 0.65 ulp.
float nxv_pow(float a, float b) {
    precise float square = a * a;
    if (b == 2.0) return square;
    if (b == 0.0 || a == 1.0) return 1.0;
    if (nxv_is_nan(a) || nxv_is_nan(b)) return NXV_NAN;
    uint magnitude = floatBitsToUint(a) & 0x7fffffffu;
    bool whole = trunc(b) == b;
    bool odd = whole && abs(b) < 16777216.0 && (int(b) & 1) == 1;
    float result;
    if (magnitude == 0u || magnitude == 0x7f800000u) {
        result = (magnitude == 0u) == (b < 0.0) ? NXV_INF : 0.0;
    } else if (abs(b) >= NXV_INF) {
        result = magnitude == 0x3f800000u ? 1.0 : (magnitude > 0x3f800000u) == (b > 0.0) ? NXV_INF : 0.0;
    } else if (floatBitsToInt(a) < 0 && !whole) {
        return NXV_NAN;
    } else {
        vec2 log_a = nxv_log_parts(vec2(uintBitsToFloat(magnitude), 0.0));
        float rough = b * log_a.x;
        if (abs(rough) > 120.0) {
            result = rough > 0.0 ? NXV_INF : 0.0;
        } else {
            int k;
            vec2 power = nxv_exp_parts(nxv_product(log_a, vec2(b, 0.0)), k);
            result = nxv_scale(nxv_total(power), k);
        }
    }
    return odd ? nxv_with_sign(result, a) : result;
}

// x = r + quadrant * pi/2 with |r| <= pi/4 for |x| < 2^13: pi/2 in four parts, the first three with exact products, the
// first two with exact differences, the third one too where it is not below the rest (Cody and Waite 1980).
vec2 nxv_reduce_trig_near(float x, out int quadrant) {
    precise float scaled = x * 0.63661975;
    precise float n = nxv_whole(scaled, quadrant);
    float rest = nxv_less(nxv_less(x, n, 1.5703125), n, 4.837513e-4);
    vec2 third = nxv_sum_ordered(rest, -n * 7.5495336e-8);
    precise float low = third.y - n * 2.563344e-12;
    return nxv_sum_ordered(third.x, low);
}

// As nxv_reduce_trig_near for every finite x: |x| times 96 bits of 2/pi, chosen by the exponent, in integers (Payne
// and Hanek 1983). Exact to 48 bits.
vec2 nxv_reduce_trig_far(float x, out int quadrant) {
    // 32 zeros, then the bits of 2/pi.
    const uint two_over_pi[8] = uint[8](
        0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    uint mantissa = (bits & 0x7fffffu) | 0x800000u;
    // The bits of 2/pi from weight 2 on; those above give multiples of 4 quarter turns.
    int position = int(bits >> 23) - 120;
    int word = position >> 5;
    int shift = position & 31;
    uvec3 window = uvec3(two_over_pi[word], two_over_pi[word + 1], two_over_pi[word + 2]) << shift;
    window |= (uvec3(two_over_pi[word + 1], two_over_pi[word + 2], two_over_pi[word + 3]) >> 1) >> (31 - shift);
    uint high, middle, low, carry;
    umulExtended(mantissa, window.z, carry, low);
    umulExtended(mantissa, window.y, high, middle);
    middle += carry;
    high += mantissa * window.x + uint(middle < carry);
    // 2 bits of quadrant, then the fraction of a quarter turn, brought to [-1/2, 1/2].
    quadrant = int((high + 0x20000000u) >> 30);
    high = (high << 2) | (middle >> 30);
    middle = (middle << 2) | (low >> 30);
    bool negative = int(high) < 0;
    if (negative) {
        high = ~high;
        middle = ~middle;
    }
    int zeros = 31 - findMSB(high | 1u);
    high = zeros == 0 ? high : (high << zeros) | (middle >> (32 - zeros));
    middle <<= zeros;
    float unit = intBitsToFloat((127 - 24 - zeros) << 23);
    vec2 turn = vec2(float(high >> 8), float(((high & 0xffu) << 16) | (middle >> 16)) * 5.9604645e-8) * unit;
    vec2 r = nxv_product(turn, NXV_HALF_PI);
    bool flip = negative != (x < 0.0);
    quadrant = x < 0.0 ? -quadrant : quadrant;
    return flip ? -r : r;
}

vec2 nxv_reduce_trig(float x, out int quadrant) {
    if (abs(x) < 8192.0) return nxv_reduce_trig_near(x, quadrant);
    return nxv_reduce_trig_far(x, quadrant);
}

// sin(r.x + r.y) for |r| <= pi/4.
vec2 nxv_sin_parts(vec2 r) {
    float z = r.x * r.x;
    precise float series = z * nxv_fma(z, nxv_fma(z, nxv_fma(z, 2.9217092e-6, -1.9861292e-4), 0.008333397),
        -0.16666667);
    precise float low = nxv_fma(r.x, series, nxv_fma(-(0.5 * z), r.y, r.y));
    return nxv_sum_ordered(r.x, low);
}

// cos(r.x + r.y) for |r| <= pi/4.
vec2 nxv_cos_parts(vec2 r) {
    vec2 square = nxv_product(r.x, r.x);
    float z = square.x;
    vec2 head = nxv_sum_ordered(1.0, -0.5 * z);
    precise float series = z * z * nxv_fma(z, nxv_fma(z, nxv_fma(z, -3.213022e-7, 2.4852765e-5), -0.0013889049),
        0.041666668);
    precise float low = series + nxv_fma(-r.x, r.y, nxv_fma(-0.5, square.y, head.y));
    return nxv_sum_ordered(head.x, low);
}

float nxv_sin_quadrant(float x, int turn) {
    if (!(abs(x) < NXV_INF)) return NXV_NAN;
    int quadrant;
    vec2 r = nxv_reduce_trig(x, quadrant);
    quadrant += turn;
    float result = ((quadrant & 1) == 0 ? nxv_sin_parts(r) : nxv_cos_parts(r)).x;
    return (quadrant & 2) == 0 ? result : -result;
}

// Cody-Waite or Payne-Hanek reduction, polynomials. 0.8 ulp.
float nxv_sin(float x) {
    return abs(x) < 0.0002 ? x : nxv_sin_quadrant(x, 0);
}

// As nxv_sin. 0.75 ulp.
float nxv_cos(float x) {
    return nxv_sin_quadrant(x, 1);
}

// Ratio of sine and cosine, both with their errors. 0.9 ulp.
float nxv_tan(float x) {
    if (!(abs(x) < NXV_INF)) return NXV_NAN;
    if (abs(x) < 0.0002) return x;
    int quadrant;
    vec2 r = nxv_reduce_trig(x, quadrant);
    vec2 s = nxv_sin_parts(r);
    vec2 c = nxv_cos_parts(r);
    bool odd = (quadrant & 1) != 0;
    return nxv_total(nxv_ratio(odd ? -c : s, odd ? s : c));
}

// (e^x + e^-x) / 2 with e^x to 30 bits. 0.85 ulp, 1.3 with a quotient 2.5 ulp off.
float nxv_cosh(float x) {
    if (nxv_is_nan(x)) return x;
    int k;
    vec2 grown = nxv_exp_parts(vec2(min(abs(x), 91.0), 0.0), k);
    vec2 sum = nxv_sum_ordered(grown.x, intBitsToFloat((127 - min(2 * k, 126)) << 23) / grown.x);
    return nxv_scale(nxv_total(vec2(sum.x, sum.y + grown.y)), k - 1);
}

// Odd polynomial up to 1, then as nxv_cosh. 0.8 ulp, 0.9 with a quotient 2.5 ulp off.
float nxv_sinh(float x) {
    if (nxv_is_nan(x)) return x;
    if (abs(x) < 1.0) {
        float z = x * x;
        return x + x * z * (0.16666667 + z * (0.008333298 + z * (1.9846359e-4 + z * 2.7591075e-6)));
    }
    int k;
    vec2 grown = nxv_exp_parts(vec2(min(abs(x), 91.0), 0.0), k);
    vec2 sum = nxv_sum_ordered(grown.x, -intBitsToFloat((127 - min(2 * k, 126)) << 23) / grown.x);
    return nxv_with_sign(nxv_scale(nxv_total(vec2(sum.x, sum.y + grown.y)), k - 1), x);
}

// Odd polynomial up to 1, then 1 - 2 / (e^2x + 1), where a quotient 2.5 ulp off is within 0.7 ulp of the result. Both
// are computed: lavapipe pays more for a branch. 1.1 ulp.
float nxv_tanh(float x) {
    float z = x * x;
    float near = x + x * z * (-0.33333296 + z * (0.13332345 + z * (-0.0538798 + z * (0.021486657 + z * (
        -0.0079461057 + z * (0.0023013637 + z * -3.584518e-4))))));
    int k;
    float mantissa = nxv_exp_mantissa(2.0 * min(abs(x), 10.0), k);
    precise float far = 1.0 - 2.0 / (intBitsToFloat(floatBitsToInt(mantissa) + (k << 23)) + 1.0);
    return nxv_with_sign(abs(x) >= 1.0 ? far : near, x);
}

// log(x + sqrt(x^2 + sign)) for 1/2 <= x <= 2^13, where x^2 + sign >= 1.
float nxv_log_root(float x, float sign) {
    vec2 square = nxv_product(x, x);
    vec2 inside = nxv_sum(square.x, sign);
    vec2 root = nxv_root(vec2(inside.x, inside.y + square.y));
    vec2 sum = nxv_sum(x, root.x);
    return nxv_log_normal(sum.x, (sum.y + root.y) / sum.x);
}

// Polynomial in x - 1 times sqrt(2 (x - 1)) up to 3/2, then log(x + sqrt(x^2 - 1)). 1.05 ulp.
float nxv_acosh(float x) {
    if (!(x >= 1.0)) return NXV_NAN;
    if (x > 8192.0) return x < NXV_INF ? nxv_log(x) + NXV_LN2 : x;
    if (x > 1.5) return nxv_log_root(x, -1.0);
    float t = x - 1.0;
    vec2 root = nxv_root(vec2(2.0 * t, 0.0));
    if (t == 0.0) return 0.0;
    precise float series = t * nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, 1.6463001e-4, -6.542607e-4),
        0.0018911051), -0.005580125), 0.018750053), -0.083333336);
    return nxv_total(vec2(root.x, nxv_fma(root.x, series, root.y)));
}

// Odd polynomial up to 1/2, then log(x + sqrt(x^2 + 1)). 1.05 ulp.
float nxv_asinh(float x) {
    if (!(abs(x) < NXV_INF)) return x;
    if (abs(x) < 0.5) {
        float z = x * x;
        return nxv_with_sign(x + x * z * (-0.16666667 + z * (0.07500021 + z * (-0.044641 + z * (0.030257681 + z * (
        -0.020936342 + z * 0.0105363205))))), x);
    }
    float magnitude = abs(x) > 8192.0 ? nxv_log(abs(x)) + NXV_LN2 : nxv_log_root(abs(x), 1.0);
    return nxv_with_sign(magnitude, x);
}

// Odd polynomial up to 1/2, then log((1 + x) / (1 - x)) / 2. 0.75 ulp.
float nxv_atanh(float x) {
    if (!(abs(x) < 1.0)) return abs(x) == 1.0 ? nxv_with_sign(NXV_INF, x) : NXV_NAN;
    if (abs(x) < 0.5) {
        float z = x * x;
        return x + x * z * (0.33333334 + z * (0.19999857 + z * (0.14291613 + z * (0.1100456 + z * (
        0.10063894 + z * (0.030841852 + z * 0.16878572))))));
    }
    vec2 ratio = nxv_ratio(nxv_sum_ordered(1.0, abs(x)), vec2(1.0 - abs(x), 0.0));
    return nxv_with_sign(0.5 * nxv_log_normal(ratio.x, ratio.y / ratio.x), x);
}

// (asin(x) - x) / x for |x| <= 1/2, from z = x^2.
float nxv_asin_tail(float z) {
    return z * (0.16666666 + z * (0.07500153 + z * (0.044585444 + z * (0.031234162 + z * (0.016596848 + z *
        0.034515806)))));
}

// s and its error with asin(x) = pi/2 - 2 s, for 1/2 <= x <= 1.
vec2 nxv_asin_complement(float x) {
    float z = 0.5 * (1.0 - x);
    if (z == 0.0) return vec2(0.0);
    vec2 root = nxv_root(vec2(z, 0.0));
    precise float low = root.y + root.x * nxv_asin_tail(z);
    return vec2(root.x, low);
}

// Odd polynomial up to 1/2, then pi/2 - 2 asin(sqrt((1 - x) / 2)). 0.65 ulp.
float nxv_asin(float x) {
    if (!(abs(x) <= 1.0)) return NXV_NAN;
    if (abs(x) <= 0.5) return x + x * nxv_asin_tail(x * x);
    vec2 s = nxv_asin_complement(abs(x));
    vec2 head = nxv_sum_ordered(NXV_HALF_PI.x, -2.0 * s.x);
    precise float result = head.x + (head.y + (NXV_HALF_PI.y - 2.0 * s.y));
    return nxv_with_sign(result, x);
}

// As nxv_asin. 0.65 ulp.
float nxv_acos(float x) {
    if (!(abs(x) <= 1.0)) return NXV_NAN;
    if (abs(x) <= 0.5) {
        vec2 head = nxv_sum_ordered(NXV_HALF_PI.x, -x);
        precise float result = head.x + (head.y + (NXV_HALF_PI.y - x * nxv_asin_tail(x * x)));
        return result;
    }
    vec2 s = nxv_asin_complement(abs(x));
    if (x > 0.0) return 2.0 * nxv_total(s);
    vec2 head = nxv_sum_ordered(NXV_PI.x, -2.0 * s.x);
    precise float result = head.x + (head.y + (NXV_PI.y - 2.0 * s.y));
    return result;
}

// turn - angle, for the smaller angle.
vec2 nxv_complement(vec2 turn, vec2 angle) {
    vec2 head = nxv_sum_ordered(turn.x, -angle.x);
    precise float low = head.y + (turn.y - angle.y);
    return vec2(head.x, low);
}

// atan(ratio.x + ratio.y) for a ratio from 0 to 1, or pi/2 minus it. The weight of ratio.y, 1 / (1 + z), to 4 bits.
vec2 nxv_atan_parts(vec2 ratio, bool complement) {
    float z = ratio.x * ratio.x;
    precise float series = z * nxv_fma(z, nxv_fma(z, nxv_fma(z, nxv_fma(z, nxv_fma(z, nxv_fma(z, nxv_fma(z, nxv_fma(z,
        nxv_fma(z, 0.0017377588, -0.010308248), 0.02858802), -0.051402092), 0.071864374), -0.08990605), 0.11101296),
        -0.14285553), 0.20000032), -0.33333334);
    vec2 angle = nxv_sum_ordered(ratio.x, nxv_fma(ratio.x, series, ratio.y * nxv_fma(z, nxv_fma(z, 0.5, -1.0), 1.0)));
    return complement ? nxv_complement(NXV_HALF_PI, angle) : angle;
}

// Odd polynomial up to 1, then pi/2 - atan(1 / x). 1.15 ulp.
float nxv_atan(float x) {
    if (nxv_is_nan(x)) return x;
    float magnitude = abs(x);
    bool complement = magnitude > 1.0;
    vec2 ratio = vec2(magnitude, 0.0);
    if (complement) ratio = magnitude > 1e9 ? vec2(0.0) : nxv_ratio(vec2(1.0, 0.0), ratio);
    return nxv_with_sign(nxv_total(nxv_atan_parts(ratio, complement)), x);
}

// small / large for magnitudes that are no NaN, also where these or their ratio are denormals.
vec2 nxv_atan2_ratio(float small, float large) {
    if (small == 0.0 || large >= NXV_INF) return vec2(small >= NXV_INF ? 1.0 : 0.0, 0.0);
    int k;
    vec2 ratio = nxv_ratio(small, large, k);
    return k < -30 ? vec2(nxv_scale(nxv_total(ratio), k), 0.0) : ratio * intBitsToFloat((127 + k) << 23);
}

// As nxv_atan, from the ratio of the smaller to the larger. 1.2 ulp.
float nxv_atan2(float y, float x) {
    if (nxv_is_nan(x) || nxv_is_nan(y)) return NXV_NAN;
    float small = min(abs(x), abs(y));
    float large = max(abs(x), abs(y));
    // Exponents of at least -32 and below 32: no step overflows or is flushed.
    bool plain = all(lessThan(floatBitsToUint(vec2(small, large)) - 0x2f800000u, uvec2(0x20000000u)));
    vec2 ratio = plain ? nxv_ratio(vec2(small, 0.0), vec2(large, 0.0)) : nxv_atan2_ratio(small, large);
    vec2 angle = nxv_atan_parts(ratio, abs(y) > abs(x));
    if (floatBitsToInt(x) < 0) angle = nxv_complement(NXV_PI, angle);
    return nxv_with_sign(nxv_total(angle), y);
}

// erf(x) - x for |x| < 0.9.
float nxv_erf_tail(float x) {
    float z = x * x;
    return x * (0.12837917 + z * (-0.37612635 + z * (0.112837404 + z * (-0.026863173 + z * (0.005214688 + z * (
        -8.3872536e-4 + z * (1.0505123e-4 + z * -7.255435e-6)))))));
}

// e^-x^2 times a polynomial in t = (x - 3) / (x + 3) over 1 + 2 x, for 1/2 <= x (Shepherd and Laframboise 1981).
float nxv_erfc_positive(float x) {
    x = min(x, 11.0);
    vec2 square = nxv_product(x, x);
    int k;
    vec2 decay = nxv_exp_parts(-square, k);
    float t = (x - 3.0) / (x + 3.0);
    precise float tail = t * nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t,
        nxv_fma(t, -1.9073744e-4, -6.9690763e-4), 0.0019574503), 0.0025092307), -0.02378967), 0.0683101), -0.11927147),
        0.12964508), -0.047562383), -0.1356211);
    vec2 value = nxv_ratio(nxv_sum_ordered(1.253008, tail + 5.8270145e-8), nxv_sum_ordered(2.0 * x, 1.0));
    return nxv_scale(nxv_total(nxv_product(decay, value)), k);
}

// Odd polynomial up to 0.9, then 1 - e^p, p a polynomial. 1.2 ulp.
float nxv_erf(float x) {
    float near = x + nxv_erf_tail(x);
    float t = min(abs(x), 4.0);
    precise float power = nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, 1.9936445e-4,
        -0.0030768109), 0.02236071), -0.10420883), -0.63686687), -1.1278626), -1.5055855e-4);
    int k;
    float mantissa = nxv_exp_mantissa(power, k);
    precise float far = 1.0 - intBitsToFloat(floatBitsToInt(mantissa) + (k << 23));
    return abs(x) >= 0.9 ? nxv_with_sign(far, x) : near;
}

// 1 - erf(x) up to 1/2, then from e^-x^2. 1.25 ulp.
float nxv_erfc(float x) {
    if (nxv_is_nan(x)) return x;
    if (abs(x) < 0.5) {
        vec2 head = nxv_sum_ordered(1.0, -x);
        precise float result = head.x + (head.y - nxv_erf_tail(x));
        return result;
    }
    float tail = nxv_erfc_positive(abs(x));
    return x > 0.0 ? tail : 2.0 - tail;
}

// Odd polynomial up to 3/4; then with w = sqrt(-log(1 - x)), w plus a polynomial in (w - 2) / (w + 2). 1.75 ulp.
float nxv_erf_inv(float x) {
    if (!(abs(x) < 1.0)) return abs(x) == 1.0 ? nxv_with_sign(NXV_INF, x) : NXV_NAN;
    if (abs(x) <= 0.75) {
        float z = x * x;
        float tail = z * (0.23201367 + z * (0.12755588 + z * (0.0865736 + z * (0.06437625 + z * (0.059767105 + z * (
        -0.02083083 + z * (0.34499007 + z * (-0.90190005 + z * (1.7614567 + z * (-1.8058022 + z *
        0.8942027))))))))));
        precise float result = x + x * (tail - 0.11377308);
        return nxv_with_sign(result, x);
    }
    vec2 w = nxv_root(vec2(-nxv_log_normal(1.0 - abs(x), 0.0), 0.0));
    float t = (w.x - 2.0) / (w.x + 2.0);
    precise float series = t * nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t, nxv_fma(t,
        0.032818053, -0.07536591), 0.09246871), -0.037520397), -0.056535084), 0.18620609), -0.2311282), 0.21252108),
        0.1982121);
    precise float result = w.x + (w.y - 0.3318117 + series);
    return nxv_with_sign(result, x);
}

// The remainder of a / b with the sign of a, exact: long division of the mantissas, 8 bits at a time.
float nxv_fmod(float a, float b) {
    uint bits_a = floatBitsToUint(a) & 0x7fffffffu;
    uint bits_b = floatBitsToUint(b) & 0x7fffffffu;
    if (bits_a >= 0x7f800000u || bits_b > 0x7f800000u || bits_b == 0u) return NXV_NAN;
    if (bits_a < bits_b) return a;
    int exponent_a = max(int(bits_a >> 23), 1);
    int exponent_b = max(int(bits_b >> 23), 1);
    uint rest = (bits_a & 0x7fffffu) | (bits_a >= 0x800000u ? 0x800000u : 0u);
    uint divisor = (bits_b & 0x7fffffu) | (bits_b >= 0x800000u ? 0x800000u : 0u);
    rest %= divisor;
    for (int left = exponent_a - exponent_b; left > 0; left -= 8) rest = (rest << min(left, 8)) % divisor;
    if (rest == 0u) return nxv_with_sign(0.0, a);
    int shift = min(23 - findMSB(rest), exponent_b - 1);
    rest <<= shift;
    uint exponent = rest >= 0x800000u ? uint(exponent_b - shift) << 23 : 0u;
    return nxv_with_sign(uintBitsToFloat((rest & 0x7fffffu) | exponent), a);
}
#endif
