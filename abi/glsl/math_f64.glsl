// Elementary functions of f64 with the special values of C's libm, from +, -, *, / and sqrt alone: GLSL has no others
// for double. Polynomials are minimax fits. Each function states its method and its largest error in ulp (units in
// the last place; 4.5 ulp are 1e-15) as measured on lavapipe (Mesa 25.0, LLVM 19), thousands of points over the whole
// domain, against 66-digit references.
#ifndef NXV_MATH_F64_GLSL
#define NXV_MATH_F64_GLSL

#define NXV_INF64 packDouble2x32(uvec2(0u, 0x7ff00000u))
#define NXV_NAN64 packDouble2x32(uvec2(0u, 0x7ff80000u))
const double NXV_LN2_HI64 = 0.6931471805592082lf; // 40 bits: its product with an exponent is exact
const double NXV_LN2_LO64 = 7.371002565167799e-13lf;
const dvec2 NXV_HALF_PI64 = dvec2(1.5707963267948966lf, 6.123233995736766e-17lf);
const dvec2 NXV_PI64 = dvec2(3.141592653589793lf, 1.2246467991473532e-16lf);

// Sums of two doubles x + y with |y| at most half an ulp of x: about 106 bits (Dekker 1971, Knuth 4.2.2).
// `precise` forbids the contractions and simplifications that would make the error terms wrong. A shader for a device
// whose fma() rounds once defines NXV_FUSED_FMA; Vulkan promises it of none.

dvec2 nxv_sum(double a, double b) {
    precise double sum = a + b;
    precise double part = sum - a;
    precise double error = (a - (sum - part)) + (b - part);
    return dvec2(sum, error);
}

// As nxv_sum, for |a| >= |b| or a = 0.
dvec2 nxv_sum_ordered(double a, double b) {
    precise double sum = a + b;
    precise double error = b - (sum - a);
    return dvec2(sum, error);
}

dvec2 nxv_product(double a, double b) {
#ifdef NXV_FUSED_FMA
    precise double product = a * b;
    precise double error = fma(a, b, -product);
#else
    precise double a_high = packDouble2x32(unpackDouble2x32(a) & uvec2(0xf8000000u, 0xffffffffu));
    precise double b_high = packDouble2x32(unpackDouble2x32(b) & uvec2(0xf8000000u, 0xffffffffu));
    precise double a_low = a - a_high;
    precise double b_low = b - b_high;
    precise double product = a * b;
    precise double error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
    return dvec2(product, error);
}

dvec2 nxv_sum(dvec2 a, dvec2 b) {
    dvec2 sum = nxv_sum(a.x, b.x);
    precise double low = sum.y + (a.y + b.y);
    return nxv_sum_ordered(sum.x, low);
}

dvec2 nxv_product(dvec2 a, dvec2 b) {
    dvec2 product = nxv_product(a.x, b.x);
    precise double low = product.y + (a.x * b.y + a.y * b.x);
    return nxv_sum_ordered(product.x, low);
}

dvec2 nxv_ratio(dvec2 a, dvec2 b) {
    precise double quotient = a.x / b.x;
    dvec2 product = nxv_product(quotient, b.x);
    precise double rest = ((a.x - product.x) - product.y) + (a.y - quotient * b.y);
    return nxv_sum_ordered(quotient, rest / b.x);
}

// `x` with its sign bit set if that of `sign` is.
double nxv_with_sign(double x, double sign) {
    return packDouble2x32(unpackDouble2x32(x) | (unpackDouble2x32(sign) & uvec2(0u, 0x80000000u)));
}

double nxv_exp2_64(int k) {
    return packDouble2x32(uvec2(0u, uint(k + 1023) << 20));
}

// x * 2^k for -2044 <= k <= 2046, in two steps so that neither factor overflows.
double nxv_scale(double x, int k) {
    int half_k = k >> 1;
    precise double scaled = x * nxv_exp2_64(half_k);
    scaled *= nxv_exp2_64(k - half_k);
    return scaled;
}

// m and k with x = m * 2^k and sqrt(1/2) <= m < sqrt(2), for finite x > 0.
double nxv_split(double x, out int k) {
    bool tiny = x < 2.2250738585072014e-308lf;
    uvec2 bits = unpackDouble2x32(tiny ? x * 18014398509481984.0lf : x);
    k = int(bits.y - 0x3fe6a09eu) >> 20;
    bits.y -= uint(k << 20);
    k -= tiny ? 54 : 0;
    return packDouble2x32(bits);
}

double nxv_divide(double a, double b) { return a / b; }

double nxv_sqrt(double x) { return sqrt(x); }

// 1.4 ulp.
double nxv_rsqrt(double x) { return x == 0.0lf ? nxv_with_sign(NXV_INF64, x) : 1.0lf / sqrt(x); }

// Three steps of Halley's method from the exponent divided by three. 2.65 ulp.
double nxv_cbrt(double x) {
    if (x == 0.0lf || !(abs(x) < NXV_INF64)) return x;
    int k;
    double m = nxv_split(abs(x), k);
    int third = (k + 3 * 512) / 3 - 512;
    m = nxv_scale(m, k - 3 * third);
    double root = double(uintBitsToFloat(floatBitsToUint(float(m)) / 3u + 709921077u));
    for (int step = 0; step < 3; ++step) {
        double cube = root * root * root;
        root = root * (cube + 2.0lf * m) / (2.0lf * cube + m);
    }
    return nxv_with_sign(nxv_scale(root, third), x);
}

// r and k with x + low = r + k ln 2 and |r| <= ln(2) / 2, for |x| below 2^11.
dvec2 nxv_reduce_exp(double x, double low, out int k) {
    precise double n = roundEven(x * 1.4426950408889634lf);
    k = int(n);
    precise double high = x - n * NXV_LN2_HI64;
    precise double rest = low - n * NXV_LN2_LO64;
    return nxv_sum(high, rest);
}

// e^r - 1 - r.x for r from nxv_reduce_exp.
double nxv_exp_tail(dvec2 r) {
    double tail = r.x * r.x * (0.5lf + r.x * (0.1666666666666667lf + r.x * (0.04166666666666668lf + r.x * (
        0.008333333333325888lf + r.x * (0.0013888888888876978lf + r.x * (0.00019841269875453375lf + r.x * (
        2.480158734244868e-05lf + r.x * (2.7557254761123693e-06lf + r.x * (2.755725697210716e-07lf + r.x * (
        2.5105439672977192e-08lf + r.x * 2.0920363443396856e-09lf))))))))));
    tail += r.y + r.x * r.y;
    return tail;
}

// e^(x + low) * 2^shift: x = k ln 2 + r, polynomial in r.
double nxv_exp_shifted(double x, double low, int shift) {
    int k;
    dvec2 r = nxv_reduce_exp(clamp(x, -800.0lf, 800.0lf), low, k);
    precise double result = 1.0lf + (r.x + nxv_exp_tail(r));
    return nxv_scale(result, k + shift);
}

// 0.8 ulp.
double nxv_exp(double x) { return nxv_is_nan(x) ? x : nxv_exp_shifted(x, 0.0lf, 0); }

// As nxv_exp; 2^k (e^r - 1) + (2^k - 1) summed with its error. 0.85 ulp.
double nxv_expm1(double x) {
    if (nxv_is_nan(x) || x == 0.0lf) return x;
    if (x < -40.0lf) return -1.0lf;
    int k;
    dvec2 r = nxv_reduce_exp(min(x, 800.0lf), 0.0lf, k);
    dvec2 base = nxv_sum(1.0lf, -nxv_exp2_64(-min(k, 1022)));
    dvec2 sum = nxv_sum(base.x, r.x);
    precise double result = sum.x + (sum.y + base.y + nxv_exp_tail(r));
    return nxv_scale(result, k);
}

// 1 / (1 + e^-x), from e^-|x|. 1.85 ulp.
double nxv_sigmoid(double x) {
    double decay = nxv_exp(-abs(x));
    return (x < 0.0lf ? decay : 1.0lf) / (1.0lf + decay);
}

// log of f + 1 + k ln 2, where f + 1 was cut off by `lost`. With s = f / (2 + f), log(1 + f) is
// f - f^2/2 + s (f^2/2 + R), R a polynomial in s^2 (fdlibm).
double nxv_log_sum(double f, double lost, int k) {
    double s = f / (2.0lf + f);
    double z = s * s;
    double series = z * (0.6666666666666666lf + z * (0.4000000000000003lf + z * (
        0.28571428571335183lf + z * (0.22222222272117628lf + z * (0.1818180811913091lf + z * (
        0.15385582526368033lf + z * (0.13285737170453843lf + z * 0.12916008549885982lf)))))));
    precise double half_square = 0.5lf * f * f;
    precise double low = s * (half_square + series) + (double(k) * NXV_LN2_LO64 + lost);
    precise double result = double(k) * NXV_LN2_HI64 - ((half_square - low) - f);
    return result;
}

// x = 2^k (1 + f). 0.75 ulp.
double nxv_log(double x) {
    if (!(x > 0.0lf)) return x == 0.0lf ? -NXV_INF64 : NXV_NAN64;
    if (x >= NXV_INF64) return x;
    int k;
    double m = nxv_split(x, k);
    return nxv_log_sum(m - 1.0lf, 0.0lf, k);
}

// As nxv_log, with what 1 + x cuts off. 0.85 ulp.
double nxv_log1p(double x) {
    if (nxv_is_nan(x) || x == 0.0lf || x >= NXV_INF64) return x;
    if (x <= -1.0lf) return x == -1.0lf ? -NXV_INF64 : NXV_NAN64;
    dvec2 sum = nxv_sum(1.0lf, x);
    int k;
    double m = nxv_split(sum.x, k);
    double lost = sum.y * nxv_exp2_64(-min(k, 1023)) * double(1.0 / float(m));
    return nxv_log_sum(k == 0 ? x : m - 1.0lf, k == 0 ? 0.0lf : lost, k);
}

// log(x) to about 65 bits, for finite x > 0. With s = f / (2 + f): 2 s + 2/3 s^3 + polynomial in s^2.
dvec2 nxv_log_parts(double x) {
    int k;
    double m = nxv_split(x, k);
    double f = m - 1.0lf;
    dvec2 s = nxv_ratio(dvec2(f, 0.0lf), nxv_sum_ordered(2.0lf, f));
    dvec2 square = nxv_product(s, s);
    double z = square.x;
    double tail = z * (0.4000000000000003lf + z * (0.28571428571335183lf + z * (0.22222222272117628lf + z * (
        0.1818180811913091lf + z * (0.15385582526368033lf + z * (0.13285737170453843lf + z *
        0.12916008549885982lf))))));
    dvec2 third = nxv_sum_ordered(0.6666666666666666lf, tail + 3.700743415417188e-17lf);
    dvec2 log_m = nxv_sum(2.0lf * s, nxv_product(nxv_product(square, s), third));
    dvec2 log_k = nxv_sum_ordered(double(k) * NXV_LN2_HI64, double(k) * NXV_LN2_LO64);
    return nxv_sum(log_k, log_m);
}

// e^(b log a) with log a to 65 bits, and C's special values. 0.8 ulp.
double nxv_pow(double a, double b) {
    precise double square = a * a;
    if (b == 2.0lf) return square;
    if (b == 0.0lf || a == 1.0lf) return 1.0lf;
    if (nxv_is_nan(a) || nxv_is_nan(b)) return NXV_NAN64;
    double magnitude = abs(a);
    bool whole = nxv_trunc(b) == b;
    bool odd = whole && abs(b) < 9007199254740992.0lf && nxv_trunc(b * 0.5lf) != b * 0.5lf;
    double result;
    if (magnitude == 0.0lf || magnitude >= NXV_INF64) {
        result = (magnitude == 0.0lf) == (b < 0.0lf) ? NXV_INF64 : 0.0lf;
    } else if (abs(b) >= NXV_INF64) {
        result = magnitude == 1.0lf ? 1.0lf : (magnitude > 1.0lf) == (b > 0.0lf) ? NXV_INF64 : 0.0lf;
    } else if (a < 0.0lf && !whole) {
        return NXV_NAN64;
    } else {
        dvec2 log_a = nxv_log_parts(magnitude);
        double rough = b * log_a.x;
        if (abs(rough) > 800.0lf) {
            result = rough > 0.0lf ? NXV_INF64 : 0.0lf;
        } else {
            dvec2 power = nxv_product(log_a, dvec2(b, 0.0lf));
            result = nxv_exp_shifted(power.x, power.y, 0);
        }
    }
    return odd ? nxv_with_sign(result, a) : result;
}

// x = r + quadrant * pi/2 with |r| <= pi/4 for |x| < 2^20: pi/2 in four parts, the first three with exact products
// (Cody and Waite 1980).
dvec2 nxv_reduce_trig_near(double x, out int quadrant) {
    precise double n = roundEven(x * 0.6366197723675814lf);
    quadrant = int(n);
    precise double rest = x - n * 1.5707963267341256lf;
    dvec2 second = nxv_sum(rest, -n * 6.077100506303966e-11lf);
    dvec2 third = nxv_sum(second.x, -n * 2.0222662487111665e-21lf);
    precise double low = second.y + third.y - n * 8.4784276603689e-32lf;
    return nxv_sum_ordered(third.x, low);
}

// As nxv_reduce_trig_near for every finite x: |x| times 192 bits of 2/pi, chosen by the exponent, in integers
// (Payne and Hanek 1983).
dvec2 nxv_reduce_trig_far(double x, out int quadrant) {
    // 64 zeros, then the bits of 2/pi.
    const uint two_over_pi[40] = uint[40](
        0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
        0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
        0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
        0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu);
    uvec2 bits = unpackDouble2x32(abs(x));
    uvec2 mantissa = uvec2(bits.x, (bits.y & 0xfffffu) | 0x100000u);
    // The bits of 2/pi from weight 2 on; those above give multiples of 4 quarter turns.
    int position = int(bits.y >> 20) - 1013;
    int word = position >> 5;
    int shift = position & 31;
    uint window[6];
    for (int i = 0; i < 6; ++i) {
        window[i] = (two_over_pi[word + i] << shift) | ((two_over_pi[word + i + 1] >> 1) >> (31 - shift));
    }
    uint product[6];
    uint64_t sum = 0;
    for (int i = 5; i >= 0; --i) {
        sum = uint64_t(mantissa.x) * window[i] + (sum >> 32);
        product[i] = uint(sum);
    }
    sum = 0;
    for (int i = 4; i >= 0; --i) {
        sum = uint64_t(mantissa.y) * window[i + 1] + product[i] + (sum >> 32);
        product[i] = uint(sum);
    }
    // 2 bits of quadrant, then the fraction of a quarter turn, brought to [-1/2, 1/2].
    quadrant = int((product[0] + 0x20000000u) >> 30);
    uint64_t high = (uint64_t(product[0]) << 34) | (uint64_t(product[1]) << 2) | (product[2] >> 30);
    uint64_t low = (uint64_t(product[2]) << 34) | (uint64_t(product[3]) << 2) | (product[4] >> 30);
    bool negative = int64_t(high) < 0;
    if (negative) {
        high = ~high;
        low = ~low;
    }
    uint top = uint(high >> 32);
    int zeros = top != 0u ? 31 - findMSB(top) : 63 - findMSB(uint(high) | 1u);
    if (zeros > 0) high = (high << zeros) | (low >> (64 - zeros));
    low <<= zeros;
    dvec2 turn = dvec2(double(high >> 11), double(((high & 0x7ffUL) << 42) | (low >> 22)) * nxv_exp2_64(-53));
    dvec2 r = nxv_product(turn * nxv_exp2_64(-53 - zeros), NXV_HALF_PI64);
    bool flip = negative != (x < 0.0lf);
    quadrant = x < 0.0lf ? -quadrant : quadrant;
    return flip ? -r : r;
}

dvec2 nxv_reduce_trig(double x, out int quadrant) {
    if (abs(x) < 1048576.0lf) return nxv_reduce_trig_near(x, quadrant);
    return nxv_reduce_trig_far(x, quadrant);
}

// sin(r.x + r.y) for |r| <= pi/4.
double nxv_sin_near(dvec2 r) {
    double z = r.x * r.x;
    precise double low = r.x * z * (-0.16666666666666666lf + z * (0.008333333333332912lf + z * (
        -0.00019841269840720468lf + z * (2.7557318916630704e-06lf + z * (-2.5052024448810263e-08lf + z * (
        1.6047926237420955e-10lf + z * -7.057766342967735e-13lf))))));
    precise double result = r.x + (low + (r.y - 0.5lf * z * r.y));
    return result;
}

// cos(r.x + r.y) for |r| <= pi/4.
double nxv_cos_near(dvec2 r) {
    double z = r.x * r.x;
    dvec2 head = nxv_sum_ordered(1.0lf, -0.5lf * z);
    precise double low = z * z * (0.041666666666666664lf + z * (-0.0013888888888887838lf + z * (
        2.4801587300222626e-05lf + z * (-2.755731846441364e-07lf + z * (2.0876551286194317e-09lf + z * (
        -1.144394269706953e-11lf + z * 3.423353775989193e-14lf))))));
    precise double result = head.x + (head.y + (low - r.x * r.y));
    return result;
}

double nxv_sin_quadrant(double x, int turn) {
    if (!(abs(x) < NXV_INF64)) return NXV_NAN64;
    int quadrant;
    dvec2 r = nxv_reduce_trig(x, quadrant);
    quadrant += turn;
    double result = (quadrant & 1) == 0 ? nxv_sin_near(r) : nxv_cos_near(r);
    return (quadrant & 2) == 0 ? result : -result;
}

// Cody-Waite or Payne-Hanek reduction, polynomials. 0.75 ulp.
double nxv_sin(double x) { return abs(x) < 1e-9lf ? x : nxv_sin_quadrant(x, 0); }

// As nxv_sin. 0.75 ulp.
double nxv_cos(double x) { return nxv_sin_quadrant(x, 1); }

// Ratio of sine and cosine. 1.85 ulp.
double nxv_tan(double x) {
    if (!(abs(x) < NXV_INF64)) return NXV_NAN64;
    if (abs(x) < 1e-9lf) return x;
    int quadrant;
    dvec2 r = nxv_reduce_trig(x, quadrant);
    double s = nxv_sin_near(r);
    double c = nxv_cos_near(r);
    bool odd = (quadrant & 1) != 0;
    return (odd ? -c : s) / (odd ? s : c);
}

// (e^x + e^-x) / 2. 1.15 ulp.
double nxv_cosh(double x) {
    if (nxv_is_nan(x)) return x;
    double grown = nxv_exp_shifted(abs(x), 0.0lf, -1);
    return grown + 0.25lf / grown;
}

// Odd polynomial up to 1, then (e^x - e^-x) / 2. 1.55 ulp.
double nxv_sinh(double x) {
    if (nxv_is_nan(x)) return x;
    if (abs(x) < 1.0lf) {
        double z = x * x;
        return x + x * z * (0.16666666666666666lf + z * (0.008333333333333678lf + z * (
        0.0001984126984089726lf + z * (2.7557319401386144e-06lf + z * (2.5052065019318852e-08lf + z * (
        1.6064722026420436e-10lf + z * (7.268412453838494e-13lf + z * 1.2929606118511732e-14lf)))))));
    }
    double grown = nxv_exp_shifted(abs(x), 0.0lf, -1);
    return nxv_with_sign(grown - 0.25lf / grown, x);
}

// Odd polynomial up to 5/8, then 1 - 2 / (e^2x + 1). 1.2 ulp.
double nxv_tanh(double x) {
    if (nxv_is_nan(x)) return x;
    if (abs(x) < 0.625lf) {
        double z = x * x;
        return nxv_with_sign(x + x * z * (-0.3333333333333333lf + z * (0.13333333333332834lf + z * (
        -0.05396825396785237lf + z * (0.02186948852112193lf + z * (-0.008863235213082065lf + z * (
        0.0035921238799884853lf + z * (-0.0014557984132968279lf + z * (0.0005898152057355653lf + z * (
        -0.00023826248060378704lf + z * (9.446484162553673e-05lf + z * (-3.4545584950201045e-05lf + z * (
        9.850421780963094e-06lf + z * -1.4726908984132777e-06lf)))))))))))), x);
    }
    return nxv_with_sign(1.0lf - 2.0lf / (nxv_exp(2.0lf * min(abs(x), 30.0lf)) + 1.0lf), x);
}

// Polynomial in x - 1 times sqrt(2 (x - 1)) up to 3/2, then log(x + sqrt(x^2 - 1)). 1.55 ulp.
double nxv_acosh(double x) {
    if (!(x >= 1.0lf)) return NXV_NAN64;
    if (x > 1e9lf) return x < NXV_INF64 ? nxv_log(x) + 0.6931471805599453lf : x;
    double t = x - 1.0lf;
    if (t > 0.5lf) return nxv_log(x + sqrt(x * x - 1.0lf));
    double root = sqrt(2.0lf * t);
    return root + root * t * (-0.08333333333333333lf + t * (0.01874999999999699lf + t * (
        -0.005580357142559359lf + t * (0.001898871516351551lf + t * (-0.0006991297454329505lf + t * (
        0.0002711342980955357lf + t * (-0.00010908062423328043lf + t * (4.502668496514965e-05lf + t * (
        -1.8739069148885875e-05lf + t * (7.452179802034574e-06lf + t * (-2.444974080937717e-06lf + t *
        4.6288105636942367e-07lf)))))))))));
}

// Odd polynomial up to 1/2, then log1p(x + x^2 / (1 + sqrt(x^2 + 1))). 1.35 ulp.
double nxv_asinh(double x) {
    if (!(abs(x) < NXV_INF64)) return x;
    double magnitude = abs(x);
    double z = x * x;
    if (magnitude < 0.5lf) return nxv_with_sign(x + x * z * (-0.16666666666666666lf + z * (
        0.07499999999999564lf + z * (-0.044642857142242844lf + z * (0.03038194440389303lf + z * (
        -0.022372157573409598lf + z * (0.017352728775287863lf + z * (-0.013964285647963709lf + z * (
        0.011545767362264243lf + z * (-0.009715709929688671lf + z * (0.008143201278875332lf + z * (
        -0.006376481271425026lf + z * (0.00399610976435101lf + z * -0.0014080724080138465lf)))))))))))), x);
    if (magnitude > 1e9lf) return nxv_with_sign(nxv_log(magnitude) + 0.6931471805599453lf, x);
    return nxv_with_sign(nxv_log1p(magnitude + z / (1.0lf + sqrt(z + 1.0lf))), x);
}

// Odd polynomial up to 1/2, then log1p(2 x / (1 - x)) / 2. 1 ulp.
double nxv_atanh(double x) {
    if (!(abs(x) < 1.0lf)) return abs(x) == 1.0lf ? nxv_with_sign(NXV_INF64, x) : NXV_NAN64;
    double magnitude = abs(x);
    double z = x * x;
    if (magnitude < 0.5lf) return x + x * z * (0.3333333333333333lf + z * (0.20000000000000984lf + z * (
        0.1428571428556029lf + z * (0.11111111122230366lf + z * (0.09090908644340555lf + z * (
        0.07692318666792401lf + z * (0.06666493759110924lf + z * (0.05884110932722702lf + z * (
        0.05252275514915763lf + z * (0.047912987584624964lf + z * (0.04455944668784173lf + z * (
        0.026159875896571157lf + z * (0.09735412275227738lf + z * (-0.10303519407520614lf + z *
        0.181663662603382lf))))))))))))));
    return nxv_with_sign(0.5lf * nxv_log1p(2.0lf * magnitude / (1.0lf - magnitude)), x);
}

// (asin(x) - x) / x for |x| <= 1/2, from z = x^2.
double nxv_asin_tail(double z) {
    return z * (0.16666666666666669lf + z * (0.07499999999998022lf + z * (0.04464285714699303lf + z * (
        0.03038194409553674lf + z * (0.022372174502858035lf + z * (0.017352358601519964lf + z * (
        0.013971691376002227lf + z * (0.011474729573957475lf + z * (0.010350533428105336lf + z * (
        0.005343025055901961lf + z * (0.017701448826953715lf + z * (-0.01530603680422102lf + z *
        0.029058483792626096lf))))))))))));
}

// s and its error with asin(x) = pi/2 - 2 s, for 1/2 <= x <= 1.
dvec2 nxv_asin_complement(double x) {
    double z = 0.5lf * (1.0lf - x);
    if (z == 0.0lf) return dvec2(0.0lf);
    precise double root = sqrt(z);
    dvec2 square = nxv_product(root, root);
    precise double low = ((z - square.x) - square.y) * double(0.5 / float(root)) + root * nxv_asin_tail(z);
    return dvec2(root, low);
}

// Odd polynomial up to 1/2, then pi/2 - 2 asin(sqrt((1 - x) / 2)). 1.1 ulp.
double nxv_asin(double x) {
    if (!(abs(x) <= 1.0lf)) return NXV_NAN64;
    if (abs(x) <= 0.5lf) return x + x * nxv_asin_tail(x * x);
    dvec2 s = nxv_asin_complement(abs(x));
    precise double result = NXV_HALF_PI64.x - (2.0lf * s.x + (2.0lf * s.y - NXV_HALF_PI64.y));
    return nxv_with_sign(result, x);
}

// As nxv_asin. 0.8 ulp.
double nxv_acos(double x) {
    if (!(abs(x) <= 1.0lf)) return NXV_NAN64;
    if (abs(x) <= 0.5lf) {
        precise double result = NXV_HALF_PI64.x - (x - (NXV_HALF_PI64.y - x * nxv_asin_tail(x * x)));
        return result;
    }
    dvec2 s = nxv_asin_complement(abs(x));
    if (x > 0.0lf) return 2.0lf * (s.x + s.y);
    precise double result = NXV_PI64.x - (2.0lf * s.x + (2.0lf * s.y - NXV_PI64.y));
    return result;
}

// atan(x) for 0 <= x <= 1: odd polynomial up to tan(pi/8), then pi/4 + atan((x - 1) / (x + 1)).
double nxv_atan_near(double x) {
    bool far = x > 0.41421356237309503lf;
    double t = far ? (x - 1.0lf) / (x + 1.0lf) : x;
    double z = t * t;
    double tail = t * z * (-0.3333333333333333lf + z * (0.19999999999998921lf + z * (-0.1428571428552674lf + z * (
        0.11111111095888836lf + z * (-0.09090908394760365lf + z * (0.07692287885330301lf + z * (
        -0.06666295799719578lf + z * (0.05877641936391449lf + z * (-0.05222084832356437lf + z * (
        0.0451741059850511lf + z * (-0.033774582942099084lf + z * 0.015479698064323104lf)))))))))));
    precise double result = far ? 0.7853981633974483lf + (t + (tail + 3.061616997868383e-17lf)) : t + tail;
    return result;
}

// Reduced to [0, 1] by 1 / x. 1.45 ulp.
double nxv_atan(double x) {
    if (nxv_is_nan(x)) return x;
    double magnitude = abs(x);
    if (magnitude <= 1.0lf) return nxv_with_sign(nxv_atan_near(magnitude), x);
    return nxv_with_sign(NXV_HALF_PI64.x - (nxv_atan_near(1.0lf / magnitude) - NXV_HALF_PI64.y), x);
}

// As nxv_atan, from the ratio of the smaller to the larger. 1.35 ulp.
double nxv_atan2(double y, double x) {
    if (nxv_is_nan(x) || nxv_is_nan(y)) return NXV_NAN64;
    double small = min(abs(x), abs(y));
    double large = max(abs(x), abs(y));
    double ratio = small >= NXV_INF64 ? 1.0lf : small == 0.0lf ? 0.0lf : small / large;
    double angle = nxv_atan_near(ratio);
    if (abs(y) > abs(x)) angle = NXV_HALF_PI64.x - (angle - NXV_HALF_PI64.y);
    if (int(unpackDouble2x32(x).y) < 0) angle = NXV_PI64.x - (angle - NXV_PI64.y);
    return nxv_with_sign(angle, y);
}

// erf(x) - x for |x| < 0.9.
double nxv_erf_tail(double x) {
    double z = x * x;
    return x * (0.1283791670955126lf + z * (-0.3761263890318391lf + z * (0.11283791670960994lf + z * (
        -0.026866170646150066lf + z * (0.005223977635344186lf + z * (-0.000854832761792492lf + z * (
        0.00012055356268327489lf + z * (-1.4926262228933882e-05lf + z * (1.6472966747226518e-06lf + z * (
        -1.6493659270810162e-07lf + z * (1.575795579792258e-08lf + z * (-1.6238504561338415e-09lf + z *
        1.5440725728744224e-10lf))))))))))));
}

// e^-x^2 times a polynomial in t = (x - 3) / (x + 3) over 1 + 2 x, for 1/2 <= x (Shepherd and Laframboise 1981).
double nxv_erfc_positive(double x) {
    x = min(x, 28.0lf);
    dvec2 square = nxv_product(x, x);
    double t = (x - 3.0lf) / (x + 3.0lf);
    double rest = t * (-0.1356211061245812lf + t * (-0.047562294353450725lf + t * (
        0.12964515870276186lf + t * (-0.11927366341530936lf + t * (0.068308027343952lf + t * (
        -0.023770514918603526lf + t * (0.0025293918161772644lf + t * (0.0018886903573540564lf + t * (
        -0.0007798322697371908lf + t * (-0.00010515976803066032lf + t * (0.00012509931602205424lf + t * (
        4.949212902722556e-06lf + t * (-2.0100328847140068e-05lf + t * (-7.301949889736727e-07lf + t * (
        3.471495693065036e-06lf + t * (3.5299873592634415e-07lf + t * (-6.144459853141044e-07lf + t * (
        -1.3474041666726082e-07lf + t * (9.861056795646864e-08lf + t * (3.4557563234277316e-08lf + t * (
        -1.0598900834367918e-08lf + t * -4.43519310131689e-09lf)))))))))))))))))))));
    dvec2 ratio = nxv_ratio(nxv_sum_ordered(1.2530080582697296lf, rest), nxv_sum(1.0lf, 2.0lf * x));
    double decay = nxv_exp_shifted(-square.x, -square.y, 0);
    precise double result = decay * ratio.x + decay * ratio.y;
    return result;
}

// Odd polynomial up to 0.9, then 1 - erfc(x). 0.9 ulp.
double nxv_erf(double x) {
    if (nxv_is_nan(x)) return x;
    if (abs(x) < 0.9lf) return x + nxv_erf_tail(x);
    return nxv_with_sign(1.0lf - nxv_erfc_positive(abs(x)), x);
}

// 1 - erf(x) up to 1/2, then from e^-x^2. 2.4 ulp.
double nxv_erfc(double x) {
    if (nxv_is_nan(x)) return x;
    if (abs(x) < 0.5lf) return 1.0lf - (x + nxv_erf_tail(x));
    double tail = nxv_erfc_positive(abs(x));
    return x > 0.0lf ? tail : 2.0lf - tail;
}

// Giles's polynomials in w = -log((1 - x)(1 + x)) (2010), by which Nx defines its f64 results: within 1e-7 of the inverse,
// and within 4 ulp of the same polynomials on the host.
double nxv_erf_inv(double x) {
    if (!(abs(x) < 1.0lf)) return abs(x) == 1.0lf ? nxv_with_sign(NXV_INF64, x) : NXV_NAN64;
    if (x == 0.0lf) return x;
    precise double inside = (1.0lf - x) * (1.0lf + x);
    double w = -nxv_log(inside);
    if (w < 5.0lf) {
        double t = w - 2.5lf;
        return x * (1.50140941lf + t * (0.246640727lf + t * (-0.00417768164lf + t * (-0.00125372503lf + t * (
        0.00021858087lf + t * (-4.39150654e-06lf + t * (-3.5233877e-06lf + t * (3.43273939e-07lf + t *
        2.81022636e-08lf))))))));
    }
    double t = sqrt(w) - 3.0lf;
    return x * (2.83297682lf + t * (1.00167406lf + t * (0.00943887047lf + t * (-0.0076224613lf + t * (
    0.00573950773lf + t * (-0.00367342844lf + t * (0.00134934322lf + t * (0.000100950558lf + t *
    -0.000200214257lf))))))));
}

// The remainder of a / b with the sign of a, exact: long division of the mantissas, 11 bits at a time.
double nxv_fmod(double a, double b) {
    uint64_t bits_a = nxv_magnitude_bits(a);
    uint64_t bits_b = nxv_magnitude_bits(b);
    const uint64_t infinity = 0x7ff0000000000000UL;
    const uint64_t one = 0x10000000000000UL;
    if (bits_a >= infinity || bits_b > infinity || bits_b == 0) return NXV_NAN64;
    if (bits_a < bits_b) return a;
    int exponent_a = max(int(bits_a >> 52), 1);
    int exponent_b = max(int(bits_b >> 52), 1);
    uint64_t rest = (bits_a & (one - 1)) | (bits_a >= one ? one : 0);
    uint64_t divisor = (bits_b & (one - 1)) | (bits_b >= one ? one : 0);
    rest %= divisor;
    for (int left = exponent_a - exponent_b; left > 0; left -= 11) rest = (rest << min(left, 11)) % divisor;
    if (rest == 0) return nxv_with_sign(0.0lf, a);
    uint top = uint(rest >> 32);
    int highest = top != 0u ? 32 + findMSB(top) : findMSB(uint(rest));
    int shift = min(52 - highest, exponent_b - 1);
    rest <<= shift;
    uint64_t exponent = rest >= one ? uint64_t(exponent_b - shift) << 52 : 0;
    return nxv_with_sign(packDouble2x32(unpackUint2x32((rest & (one - 1)) | exponent)), a);
}
#endif
