// The families of distributions: log density and gradient of one unconstrained coordinate z, in REAL. x is what has the
// distribution; a log density is that of x plus log|dx/dz|, with every constant.
// `new_` gives a family with its parameters, `gradient` the derivative at z, and `log_density` the value at the z of the
// last gradient. Where the parameters make no distribution, all of them are NaN.
#ifndef FAMILIES_GLSL
#define FAMILIES_GLSL

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

// What `new_` gives for each family.
#define FORM_normal Normal
#define FORM_exponential Exponential
#define FORM_studentt Heavy
#define FORM_cauchy Heavy
#define FORM_halfnormal HalfNormal
#define FORM_weibull Weibull
#define FORM_beta Beta
#define FORM_gamma Gamma
#define FORM_lognormal Normal

REAL positive(REAL x) { return x > REAL(0) ? x : NOT_A_NUMBER; }

// x is z, or e^z for the lognormal, whose density of x and |dx/dz| together are the normal density of z.
struct Normal { REAL mu, inverse, constant, u; };

Normal new_normal(REAL mu, REAL sigma) {
    precise Normal f;
    f.mu = mu;
    f.inverse = nxv_divide(REAL(1), positive(sigma));
    f.constant = -nxv_log(positive(sigma)) - HALF_LOG_TWO_PI;
    return f;
}

Normal new_lognormal(REAL mu, REAL sigma) { return new_normal(mu, sigma); }

precise REAL gradient(inout Normal f, REAL z) {
    f.u = (z - f.mu) * f.inverse;
    return -f.u * f.inverse;
}

precise REAL log_density(Normal f, REAL z) { return f.constant - REAL(0.5) * f.u * f.u; }

// x is e^z, y is lambda x.
struct Exponential { REAL lambda, constant, y; };

Exponential new_exponential(REAL lambda) {
    precise Exponential f;
    f.lambda = positive(lambda);
    f.constant = nxv_log(f.lambda);
    return f;
}

precise REAL gradient(inout Exponential f, REAL z) {
    f.y = f.lambda * nxv_exp(z);
    return REAL(1) - f.y;
}

precise REAL log_density(Exponential f, REAL z) { return f.constant + z - f.y; }

// x is z. v is (x - mu) / (sigma sqrt(nu)), or (x - loc) / scale.
struct Heavy { REAL mu, inverse, slope, power, constant, v; };

Heavy new_studentt(REAL mu, REAL sigma, REAL nu) {
    sigma = positive(sigma);
    nu = positive(nu);
    precise Heavy f;
    f.mu = mu;
    f.inverse = nxv_divide(REAL(1), sigma * nxv_sqrt(nu));
    precise REAL power = nu + REAL(1);
    f.slope = -power * f.inverse;
    f.power = REAL(0.5) * power;
    f.constant = nxv_lgamma_half_step(REAL(0.5) * nu) - REAL(0.5) * (nxv_log(nu) + LOG_PI) - nxv_log(sigma);
    return f;
}

Heavy new_cauchy(REAL loc, REAL scale) {
    scale = positive(scale);
    precise Heavy f;
    f.mu = loc;
    f.inverse = nxv_divide(REAL(1), scale);
    f.slope = REAL(-2) * f.inverse;
    f.power = REAL(1);
    f.constant = -nxv_log(scale) - LOG_PI;
    return f;
}

// v / (1 + v^2), also where v^2 is infinite.
precise REAL over_one_plus_square(REAL v) {
    if (abs(v) > LARGE) return nxv_divide(REAL(1), v);
    precise REAL below = REAL(1) + v * v;
    return nxv_divide(v, below);
}

// log(1 + v^2), also where v^2 is infinite.
precise REAL log_one_plus_square(REAL v) {
    if (abs(v) > LARGE) return REAL(2) * nxv_log(abs(v));
    precise REAL square = v * v;
    return nxv_log1p(square);
}

precise REAL gradient(inout Heavy f, REAL z) {
    f.v = (z - f.mu) * f.inverse;
    return f.slope * over_one_plus_square(f.v);
}

precise REAL log_density(Heavy f, REAL z) { return f.constant - f.power * log_one_plus_square(f.v); }

// x is e^z.
struct HalfNormal { REAL inverse, constant, square; };

HalfNormal new_halfnormal(REAL sigma) {
    precise HalfNormal f;
    f.inverse = nxv_divide(REAL(1), positive(sigma));
    f.constant = -nxv_log(positive(sigma)) - HALF_LOG_HALF_PI;
    return f;
}

precise REAL gradient(inout HalfNormal f, REAL z) {
    precise REAL u = nxv_exp(z) * f.inverse;
    f.square = u * u;
    return REAL(1) - f.square;
}

precise REAL log_density(HalfNormal f, REAL z) { return f.constant + z - REAL(0.5) * f.square; }

// x is e^z. t is log((x / lambda)^k), y its exponential.
struct Weibull { REAL k, centre, constant, t, y; };

Weibull new_weibull(REAL k, REAL lambda) {
    precise Weibull f;
    f.k = positive(k);
    f.centre = nxv_log(positive(lambda));
    f.constant = nxv_log(f.k);
    return f;
}

precise REAL gradient(inout Weibull f, REAL z) {
    f.t = f.k * (z - f.centre);
    f.y = nxv_exp(f.t);
    return f.k - f.k * f.y;
}

precise REAL log_density(Weibull f, REAL z) { return f.constant + f.t - f.y; }

// x is 1 / (1 + e^-z): log(x) is min(z, 0) - rest, and log(1 - x) is -max(z, 0) - rest.
struct Beta { REAL alpha, beta, constant, decay; };

Beta new_beta(REAL alpha, REAL beta) {
    precise Beta f;
    f.alpha = positive(alpha);
    f.beta = positive(beta);
    f.constant = -nxv_lbeta(f.alpha, f.beta);
    return f;
}

precise REAL gradient(inout Beta f, REAL z) {
    f.decay = nxv_exp(-abs(z));
    precise REAL near = nxv_divide(REAL(1), REAL(1) + f.decay);
    precise REAL far = f.decay * near;
    return z < REAL(0) ? f.alpha * near - f.beta * far : f.alpha * far - f.beta * near;
}

precise REAL log_density(Beta f, REAL z) {
    precise REAL rest = (f.alpha + f.beta) * nxv_log1p(f.decay);
    return f.constant + (f.alpha * min(z, REAL(0)) - f.beta * max(z, REAL(0))) - rest;
}

// x is e^z. t is log(x / (alpha / beta)), the distance from the mode of z; y is e^t - 1.
struct Gamma { REAL alpha, centre, constant, t, y; };

Gamma new_gamma(REAL alpha, REAL beta) {
    precise Gamma f;
    f.alpha = positive(alpha);
    f.centre = nxv_log(f.alpha) - nxv_log(positive(beta));
    f.constant = nxv_lgamma_peak(f.alpha);
    return f;
}

precise REAL gradient(inout Gamma f, REAL z) {
    f.t = z - f.centre;
    f.y = nxv_expm1(f.t);
    return -f.alpha * f.y;
}

precise REAL log_density(Gamma f, REAL z) { return f.constant + f.alpha * (f.t - f.y); }
#endif
