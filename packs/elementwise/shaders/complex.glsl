// Functions of complex numbers, with the formulas, branches and cuts of the host's `kernels/complex.rs`. Each is off by at
// most 16 ulp of the result's magnitude, measured against the host's over the sweep's values.
#ifndef COMPLEX_GLSL
#define COMPLEX_GLSL

#ifdef MATH_F64
#define REAL double
#define COMPLEX dvec2
const REAL far = 690.0lf;
const REAL saturated = 20.0lf;
#else
#define REAL float
#define COMPLEX vec2
const REAL far = 80.0;
const REAL saturated = 10.0;
#endif

REAL complex_infinity() { return REAL(uintBitsToFloat(0x7f800000u)); }

COMPLEX complex_undefined() { return COMPLEX(uintBitsToFloat(0x7fc00000u)); }

bool is_endless(COMPLEX z) { return is_infinite(z.x) || is_infinite(z.y); }

// acosh and asinh of a number with an infinite part: log(z + sqrt(z^2 - 1)), by the rules for infinite parts of each step.
COMPLEX complex_endless_hyperbolic(COMPLEX z) {
    REAL other = is_infinite(z.x) ? z.y : z.x;
    if (is_infinite(other) || is_nan(other) || !truth(other)) return complex_undefined();
    REAL quarter = nxv_atan2(REAL(1), REAL(1));
    if (negative(z.x)) return COMPLEX(complex_infinity(), complex_undefined().y);
    return COMPLEX(complex_infinity(), nxv_with_sign(quarter, z.y));
}

// 0 stays 0, whatever it is multiplied with.
REAL complex_grown(REAL x, REAL by) { return truth(x) ? x * by : x; }

// e^x times the parts of `by`.
COMPLEX complex_exp_times(REAL x, COMPLEX by) {
    if (absolute(x) < far) {
        return by * nxv_exp(x);
    }
    REAL root = nxv_exp(x * REAL(0.5));
    return COMPLEX(complex_grown(complex_grown(by.x, root), root), complex_grown(complex_grown(by.y, root), root));
}

// (re cosh x, im sinh x).
COMPLEX complex_cosh_sinh(REAL re, REAL im, REAL x) {
    if (absolute(x) < far) return COMPLEX(re * nxv_cosh(x), im * nxv_sinh(x));
    return complex_exp_times(absolute(x), REAL(0.5) * COMPLEX(re, negative(x) ? -im : im));
}

COMPLEX complex_exp(COMPLEX z) {
    if (is_infinite(z.x) && negative(z.x)) return COMPLEX(0);
    if (!truth(z.y)) return COMPLEX(nxv_exp(z.x), z.y);
    return complex_exp_times(z.x, COMPLEX(nxv_cos(z.y), nxv_sin(z.y)));
}

COMPLEX complex_expm1(COMPLEX z) {
    if (!truth(z.y)) return COMPLEX(nxv_expm1(z.x), z.y);
    COMPLEX e = complex_exp(z);
    if (z.x >= REAL(1)) return COMPLEX(e.x - REAL(1), e.y);
    REAL half_sine = nxv_sin(z.y * REAL(0.5));
    return COMPLEX(nxv_expm1(z.x) * nxv_cos(z.y) - REAL(2) * half_sine * half_sine, e.y);
}

COMPLEX complex_log(COMPLEX z) {
    REAL x = absolute(z.x);
    REAL y = absolute(z.y);
    REAL large = x > y ? x : y;
    REAL small = x > y ? y : x;
    REAL angle = nxv_atan2(z.y, z.x);
    if (is_nan(z.x)) return COMPLEX(z.x, angle);
    if (is_nan(z.y)) return COMPLEX(z.y, angle);
    if (is_infinite(large)) return COMPLEX(large, angle);
    if (!truth(large)) return COMPLEX(-complex_infinity(), angle);
    if (large > REAL(0.5) && large < REAL(2)) {
        precise REAL beyond = (large - REAL(1)) * (large + REAL(1)) + small * small;
        return COMPLEX(nxv_log1p(beyond) * REAL(0.5), angle);
    }
    REAL ratio = nxv_divide(small, large);
    return COMPLEX(nxv_log(large) + nxv_log1p(ratio * ratio) * REAL(0.5), angle);
}

COMPLEX complex_log1p(COMPLEX z) {
    COMPLEX whole = complex_log(COMPLEX(REAL(1) + z.x, z.y));
    if (!(absolute(z.x) < REAL(0.5) && absolute(z.y) < REAL(0.5))) return whole;
    precise REAL beyond = z.x * (REAL(2) + z.x) + z.y * z.y;
    return COMPLEX(nxv_log1p(beyond) * REAL(0.5), whole.y);
}

COMPLEX complex_divide(COMPLEX a, REAL b) { return COMPLEX(nxv_divide(a.x, b), nxv_divide(a.y, b)); }

// Smith (1962).
COMPLEX complex_divide(COMPLEX a, COMPLEX b) {
    if (!truth(b.x) && !truth(b.y)) return complex_divide(a, absolute(b.x));
    bool endless = is_infinite(b.x) || is_infinite(b.y);
    bool bounded = !is_infinite(a.x) && !is_infinite(a.y) && !is_nan(a.x) && !is_nan(a.y);
    if (endless && bounded) return COMPLEX(0);
    if (absolute(b.x) >= absolute(b.y)) {
        REAL ratio = nxv_divide(b.y, b.x);
        return complex_divide(COMPLEX(a.x + a.y * ratio, a.y - a.x * ratio), b.x + b.y * ratio);
    }
    REAL ratio = nxv_divide(b.x, b.y);
    return complex_divide(COMPLEX(a.x * ratio + a.y, a.y * ratio - a.x), b.x * ratio + b.y);
}
COMPLEX complex_divide(REAL a, COMPLEX b) { return complex_divide(COMPLEX(a, 0), b); }

COMPLEX complex_sigmoid(COMPLEX z) {
    COMPLEX w = negative(z.x) ? z : -z;
    COMPLEX e = complex_exp(w);
    REAL half_cosine = nxv_cos(w.y * REAL(0.5));
    COMPLEX sum = COMPLEX(REAL(2) * nxv_exp(w.x) * half_cosine * half_cosine - nxv_expm1(w.x), e.y);
    return complex_divide(negative(z.x) ? e : COMPLEX(1, 0), sum);
}

COMPLEX complex_cos(COMPLEX z) { return complex_cosh_sinh(nxv_cos(z.x), -nxv_sin(z.x), z.y); }
COMPLEX complex_sin(COMPLEX z) { return complex_cosh_sinh(nxv_sin(z.x), nxv_cos(z.x), z.y); }
COMPLEX complex_cosh(COMPLEX z) { return complex_cosh_sinh(nxv_cos(z.y), nxv_sin(z.y), z.x); }
COMPLEX complex_sinh(COMPLEX z) { return complex_cosh_sinh(nxv_sin(z.y), nxv_cos(z.y), z.x).yx; }

// Kahan, "Branch cuts for complex elementary functions" (1987).
COMPLEX complex_tanh(COMPLEX z) {
    if (is_endless(z)) return complex_undefined();
    if (absolute(z.x) > saturated) {
        REAL tail = REAL(4) * nxv_sin(z.y) * nxv_cos(z.y) * nxv_exp(REAL(-2) * absolute(z.x));
        return COMPLEX(nxv_with_sign(REAL(1), z.x), tail);
    }
    REAL t = nxv_tan(z.y);
    REAL s = nxv_sinh(z.x);
    REAL beta = REAL(1) + t * t;
    REAL rho = nxv_sqrt(REAL(1) + s * s);
    return complex_divide(COMPLEX(beta * rho * s, t), REAL(1) + beta * s * s);
}

COMPLEX complex_tan(COMPLEX z) {
    COMPLEX turned = complex_tanh(COMPLEX(-z.y, z.x));
    return COMPLEX(turned.y, -turned.x);
}

COMPLEX complex_sqrt(COMPLEX z) {
    REAL x = absolute(z.x);
    REAL y = absolute(z.y);
    bool below = z.y < REAL(0);
    REAL infinite = below ? -complex_infinity() : complex_infinity();
    if (is_infinite(y)) return COMPLEX(y, infinite);
    if (is_infinite(x)) return negative(z.x) ? COMPLEX(0, infinite) : COMPLEX(x, 0);
    if (!truth(x) && !truth(y)) return z;
    REAL root;
    if (x >= y) {
        REAL ratio = nxv_divide(y, x);
        root = nxv_sqrt(x) * nxv_sqrt(REAL(0.5) * (REAL(1) + nxv_sqrt(REAL(1) + ratio * ratio)));
    } else {
        REAL ratio = nxv_divide(x, y);
        root = nxv_sqrt(y) * nxv_sqrt(REAL(0.5) * (ratio + nxv_sqrt(REAL(1) + ratio * ratio)));
    }
    if (z.x >= REAL(0)) return COMPLEX(root, nxv_divide(z.y, REAL(2) * root));
    REAL im = below ? -root : root;
    return COMPLEX(nxv_divide(z.y, REAL(2) * im), im);
}

COMPLEX complex_rsqrt(COMPLEX z) { return complex_divide(COMPLEX(1, 0), complex_sqrt(z)); }

// An infinite part counts, whatever the other is.
REAL complex_absolute(COMPLEX z) {
    REAL x = absolute(z.x);
    REAL y = absolute(z.y);
    if (is_infinite(x) || is_infinite(y)) return complex_infinity();
    if (is_nan(x)) return x;
    if (is_nan(y)) return y;
    REAL large = x > y ? x : y;
    if (!truth(large)) return large;
    REAL ratio = nxv_divide(x > y ? y : x, large);
    return large * nxv_sqrt(REAL(1) + ratio * ratio);
}

COMPLEX complex_cbrt(COMPLEX z) {
    REAL root = nxv_cbrt(complex_absolute(z));
    REAL angle = nxv_atan2(z.y, z.x) / REAL(3);
    return truth(angle) ? root * COMPLEX(nxv_cos(angle), nxv_sin(angle)) : COMPLEX(root, 0);
}

COMPLEX complex_less(COMPLEX z) { return complex_sqrt(COMPLEX(REAL(1) - z.x, -z.y)); }
COMPLEX complex_more(COMPLEX z) { return complex_sqrt(COMPLEX(REAL(1) + z.x, z.y)); }

// Kahan (1987). The root of a negative number lies above.
COMPLEX complex_asin(COMPLEX z) {
    if (is_endless(z)) return complex_undefined();
    COMPLEX less = complex_less(z);
    COMPLEX more = complex_more(z);
    REAL re = nxv_atan2(z.x, less.x * more.x - less.y * more.y);
    REAL im = nxv_asinh(less.x * more.y - less.y * more.x);
    if (truth(z.y) || absolute(z.x) <= REAL(1)) return COMPLEX(re, im);
    return COMPLEX(re, negative(z.x) ? absolute(im) : -absolute(im));
}

// -i log(z + sqrt(z^2 - 1)): the principal value where the parts have the same sign, else its negative.
COMPLEX complex_acos(COMPLEX z) {
    if (is_endless(z)) return complex_undefined();
    COMPLEX less = complex_less(z);
    COMPLEX more = complex_more(z);
    REAL re = REAL(2) * nxv_atan2(less.x, more.x);
    REAL im = nxv_asinh(more.x * less.y - more.y * less.x);
    if (!truth(z.y) && absolute(z.x) > REAL(1)) {
        return negative(z.x) ? COMPLEX(re, absolute(im)) : COMPLEX(0, -absolute(im));
    }
    bool opposed = negative(z.x) != negative(z.y) && truth(z.x) && truth(z.y);
    return opposed ? COMPLEX(-re, -im) : COMPLEX(re, im);
}

COMPLEX complex_acosh(COMPLEX z) {
    if (is_endless(z)) return complex_endless_hyperbolic(z);
    COMPLEX turned = complex_acos(z);
    return COMPLEX(-turned.y, turned.x);
}

COMPLEX complex_asinh(COMPLEX z) {
    if (is_endless(z)) return complex_endless_hyperbolic(z);
    COMPLEX turned = complex_asin(COMPLEX(-z.y, z.x));
    if (truth(z.x) || absolute(z.y) <= REAL(1)) return COMPLEX(turned.y, -turned.x);
    return COMPLEX(nxv_with_sign(absolute(turned.y), z.y), nxv_with_sign(absolute(turned.x), z.y));
}

COMPLEX complex_atanh(COMPLEX z) {
    if (is_endless(z)) return complex_undefined();
    REAL x = absolute(z.x);
    REAL re = nxv_log1p(nxv_divide(x, (REAL(1) - x) * (REAL(1) - x) + z.y * z.y) * REAL(4)) * REAL(0.25);
    REAL angle = nxv_atan2(z.y, ((REAL(1) - z.x) * (REAL(1) + z.x) - z.y * z.y) * REAL(0.5));
    return COMPLEX(nxv_with_sign(re, z.x), angle * REAL(0.5));
}

COMPLEX complex_atan(COMPLEX z) {
    COMPLEX turned = complex_atanh(COMPLEX(-z.y, z.x));
    if (truth(z.x) || absolute(z.y) <= REAL(1)) return COMPLEX(turned.y, -turned.x);
    return COMPLEX(nxv_with_sign(absolute(turned.y), z.y), -turned.x);
}

// e^(b log a), but for the powers of 0, and for exponents 1 and -1.
COMPLEX complex_pow(COMPLEX a, COMPLEX b) {
    if (!truth(a.x) && !truth(a.y)) return COMPLEX(!truth(b.x) && !truth(b.y) ? 1 : 0, 0);
    if (b.x == REAL(1) && !truth(b.y)) return a;
    if (b.x == REAL(-1) && !truth(b.y)) return complex_divide(COMPLEX(1, 0), a);
    if (is_endless(a)) return complex_undefined();
    COMPLEX log_a = complex_log(a);
    return complex_exp(COMPLEX(b.x * log_a.x - b.y * log_a.y, b.x * log_a.y + b.y * log_a.x));
}

COMPLEX complex_conjugate(COMPLEX z) { return COMPLEX(z.x, negated(z.y)); }
#endif
