#!/usr/bin/env python3
"""Writes tables.txt: what ops of docs/ops.md give, by exact integers and rationals, and mpmath for functions.

    pip install mpmath; python3 make.py > tables.txt

Nothing here comes from the code under test. One line is one request: op, type of the result, then `type:elements` for each
operand and for the result, little-endian hex. The seed is fixed, so that the same file comes out.
"""
import math
import random
from fractions import Fraction
import mpmath
from formats import FLOATS, INF, INTEGERS, NAN, bounds, cast, element, float_bits, rounded, size, value, values, whole_numbers, wrap

mpmath.mp.prec = 400
random.seed(20261122)


def row(op, operands, result):
    kind, values = result
    columns = [f"{k}:" + "".join(element(k, v) for v in vs) for k, vs in operands + [(kind, values)]]
    print(op, *columns)


def casts():
    kinds = [*INTEGERS, *FLOATS]
    for source in kinds:
        for target in kinds:
            if source != target:
                vs = values(source, 20)
                row("as_type", [(source, vs)], (target, [cast(source, target, v) for v in vs]))


def merged(a, b):
    (s, n), (t, m) = INTEGERS[a], INTEGERS[b]
    if s == t:
        return a if n >= m else b
    signed, unsigned = (n, m) if s else (m, n)
    return f"s{max(signed, min(2 * unsigned, 64))}"


def truncated(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


INTEGER_OPS = {
    "add": lambda a, b, n: a + b,
    "subtract": lambda a, b, n: a - b,
    "multiply": lambda a, b, n: a * b,
    "quotient": lambda a, b, n: truncated(a, b),
    "remainder": lambda a, b, n: a - b * truncated(a, b),
    "min": lambda a, b, n: min(a, b),
    "max": lambda a, b, n: max(a, b),
    "bitwise_and": lambda a, b, n: a & b,
    "bitwise_xor": lambda a, b, n: a ^ b,
    "pow": lambda a, b, n: pow(a, b, 1 << 64),
    "left_shift": lambda a, b, n: a << b if b < n else 0,
    "right_shift": lambda a, b, n: a >> min(b, 64),
}
PAIRS = [(k, k) for k in INTEGERS]
PAIRS += [("u64", "s8"), ("s16", "u64"), ("u64", "s32"), ("s32", "u64"), ("u64", "s64"), ("s64", "u64"), ("u32", "s32"),
          ("s8", "u16")]


def integers():
    for op, f in INTEGER_OPS.items():
        for a, b in PAIRS:
            kind = merged(a, b)
            xs, ys = whole_numbers(a, 12), whole_numbers(b, 12)
            random.shuffle(ys)
            if op in ("quotient", "remainder"):
                ys = [y or 7 for y in ys]
            if op in ("pow", "left_shift", "right_shift"):
                high = bounds(b)[1]
                ys = [min(y, high) for y in [0, 1, 2, 3, 7, 8, 15, 31, 63, 64, high, high - 1]]
            width = INTEGERS[kind][1]
            row(op, [(a, xs), (b, ys)], (kind, [wrap(kind, f(x, y, width)) for x, y in zip(xs, ys)]))
    for a, b, c in [("u64", "s32", "s32"), ("s32", "u64", "s64"), ("u64", "u64", "s8"), ("s64", "u8", "u64"), ("u8", "u8", "u8")]:
        kind = merged(merged(a, b), c)
        for _ in range(2):
            xs, low, high = whole_numbers(a, 14), random.choice(whole_numbers(b, 9)), random.choice(whole_numbers(c, 9))
            row("clip", [(a, xs), (b, [low] * 14), (c, [high] * 14)],
                (kind, [wrap(kind, min(max(x, low), high)) for x in xs]))


def near(kind, x):
    """Numbers of that kind at and around x."""
    if kind in INTEGERS:
        low, high = bounds(kind)
        return [max(low, min(high, int(x) + d)) for d in (-1, 0, 1)]
    bits = rounded(kind, x)
    top = rounded(kind, INF)
    return [b for b in (bits - 1, bits, bits + 1) if 0 <= b and (b & ~(1 << 8 * size(kind) - 1)) < top]


def comparisons():
    """One row for all six: the order of each pair, as the elements of a u8 result: 0 less, 1 equal, 2 greater, 3 none."""
    kinds = [*INTEGERS, *FLOATS]
    for index, a in enumerate(kinds):
        for b in kinds[index:]:
            a, b = random.sample([a, b], 2)
            mixed = (a in INTEGERS) != (b in INTEGERS) or {a[0], b[0]} == {"u", "s"}
            xs, ys = values(a, 12), values(b, 12)
            random.shuffle(ys)
            for _ in range(14 if mixed and (size(a) > 2 or size(b) > 2) else 4):
                x = Fraction(random.choice([1, -1]) * (random.getrandbits(20) | 1 << 20)) * Fraction(2) ** random.randint(-21, 43)
                p, q = near(a, x), near(b, x)
                if p and q:
                    xs.append(random.choice(p))
                    ys.append(random.choice(q))
            row("order", [(a, xs), (b, ys)], ("u8", [order(a, x, b, y) for x, y in zip(xs, ys)]))


def order(a, x, b, y):
    x, y = [Fraction(v) if k in INTEGERS else value(k, v) for k, v in ((a, x), (b, y))]
    if NAN in (x, y):
        return 3
    rank = {INF: 1, "-inf": -1}
    p, q = rank.get(x, 0), rank.get(y, 0)
    if p or q:
        return (p > q) - (p < q) + 1
    return (x > y) - (x < y) + 1


def roundings():
    """Halves and quarters of every size, and their neighbours."""
    def half_away(x):
        return int(abs(x) + Fraction(1, 2)) * (1 if x > 0 else -1)
    for kind, (precision, _) in FLOATS.items():
        for op, f in {"floor": math.floor, "ceil": math.ceil, "round": half_away}.items():
            bits = float_bits(kind, 12)
            for exponent in range(-3, precision + 2):
                x = Fraction(random.getrandbits(precision) | 1) / Fraction(2) ** (precision - 1)
                quarters = int(x * Fraction(2) ** (exponent + 2))
                bits += near(kind, Fraction(random.choice([1, -1]) * (quarters | random.randint(0, 3)), 4))
            xs = [value(kind, b) for b in bits]
            row(op, [(kind, bits)], (kind, [b if x in (NAN, INF, "-inf") else
                                            rounded(kind, Fraction(f(x)), negative_zero=b >> 8 * size(kind) - 1)
                                            for b, x in zip(bits, xs)]))


M = mpmath
GILES = ([2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
          0.246640727, 1.50140941],
         [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
          1.00167406, 2.83297682])


def giles(x):
    w = -M.log((1 - x) * (1 + x))
    return x * (M.polyval(GILES[0], w - 2.5) if w < 5 else M.polyval(GILES[1], M.sqrt(w) - 3))


# Function, and the arguments it is tried on: a range, or a range of exponents of 2 with either sign.
FUNCTIONS = {
    "exp": (M.exp, (-60, 60)), "expm1": (M.expm1, (-20, 60)), "log": (M.log, (0, 1000)), "log1p": (M.log1p, (-0.99, 100)),
    "sigmoid": (lambda x: 1 / (1 + M.exp(-x)), (-60, 60)), "cos": (M.cos, (-1000, 1000)), "sin": (M.sin, (-1000, 1000)),
    "tan": (M.tan, (-1000, 1000)), "cosh": (M.cosh, (-60, 60)), "sinh": (M.sinh, (-60, 60)), "tanh": (M.tanh, (-20, 20)),
    "acosh": (M.acosh, (1, 1000)), "asinh": (M.asinh, (-1000, 1000)), "atanh": (M.atanh, (-1, 1)), "acos": (M.acos, (-1, 1)),
    "asin": (M.asin, (-1, 1)), "atan": (M.atan, (-1000, 1000)), "sqrt": (M.sqrt, (0, 1000)),
    "rsqrt": (lambda x: 1 / M.sqrt(x), (0, 1000)), "cbrt": (lambda x: M.sign(x) * M.cbrt(abs(x)), (-1000, 1000)),
    "erf": (M.erf, (-5, 5)), "erfc": (M.erfc, (-5, 12)), "erf_inv": (M.erfinv, (-1, 1)),
}


def rational(x):
    sign, mantissa, exponent, _ = x._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent


def within(kind, low, high):
    """A number of that kind between two bounds: even in value, or even in exponent towards one bound or zero."""
    while True:
        how = random.random()
        if how < 0.5:
            x = random.uniform(low, high)
        else:
            x = random.choice([1, -1, low + 1e-9, high - 1e-9]) * 2.0 ** -random.randint(1, 12) * random.uniform(1, 2)
            x = x if how < 0.75 else random.choice([low, high]) - x
        if low < x < high:
            bits = rounded(kind, Fraction(x))
            x = value(kind, bits)
            if x not in (INF, "-inf") and low < x < high and x != 0:
                return bits


def functions():
    for op, (f, (low, high)) in FUNCTIONS.items():
        for kind in FLOATS:
            bits = [within(kind, low, high) for _ in range(20 if kind in ("f32", "f64") else 14)]
            g = giles if (op, kind) == ("erf_inv", "f64") else f
            exact = [rational(M.mpf(g(M.mpf(v.numerator) / v.denominator))) for v in (value(kind, b) for b in bits)]
            row(op, [(kind, bits)], (kind, [rounded(kind, v) for v in exact]))


def fmod(a, b):
    return a - b * int(a / b)


def quotients_of_denormals(kind, count):
    """Dividends and divisors whose quotient is denormal."""
    precision, least = FLOATS[kind]
    pairs = []
    while len(pairs) < count:
        a = Fraction(random.getrandbits(precision) | 1) * Fraction(2) ** random.randint(least - precision, least + 60)
        b = a / Fraction(random.getrandbits(precision) | 1) / Fraction(2) ** random.randint(least - 2 * precision, least - precision)
        a, b = rounded(kind, a), rounded(kind, b)
        if value(kind, a) and value(kind, b) not in (0, INF):
            pairs.append((a, b))
    return pairs


def pairs_of_floats():
    for kind in FLOATS:
        for op, f in {"divide": lambda a, b: a / b, "remainder": fmod}.items():
            pairs = [(within(kind, -1000, 1000), within(kind, -30, 30)) for _ in range(24)]
            if op == "divide" and kind == "f32":
                pairs += quotients_of_denormals(kind, 40)
            exact = [f(value(kind, a), value(kind, b)) for a, b in pairs]
            signs = [a >> (8 * size(kind) - 1) for a, _ in pairs]
            row(op, [(kind, [a for a, _ in pairs]), (kind, [b for _, b in pairs])],
                (kind, [rounded(kind, x, negative_zero=x == 0 and s) for x, s in zip(exact, signs)]))
        for op, f, low in [("atan2", M.atan2, -1000), ("pow", M.power, 0)]:
            pairs = [(within(kind, low, 100), within(kind, -8, 8)) for _ in range(24)]
            def mp(b):
                x = value(kind, b)
                return M.mpf(x.numerator) / x.denominator
            exact = [rational(M.mpf(f(mp(a), mp(b)))) for a, b in pairs]
            row(op, [(kind, [a for a, _ in pairs]), (kind, [b for _, b in pairs])], (kind, [rounded(kind, x) for x in exact]))


def reductions():
    for kind in INTEGERS:
        vs = whole_numbers(kind, 40)
        product = 1
        for v in vs[:5]:
            product *= v or 3
        row("sum", [(kind, vs)], (kind, [wrap(kind, sum(vs))]))
        row("product", [(kind, [v or 3 for v in vs[:5]])], (kind, [wrap(kind, product)]))
        row("reduce_max", [(kind, vs)], (kind, [max(vs)]))
        row("reduce_min", [(kind, vs)], (kind, [min(vs)]))
        row("argmax", [(kind, vs)], ("s32", [vs.index(max(vs))]))
        row("argmin", [(kind, vs)], ("s32", [vs.index(min(vs))]))
    for kind in FLOATS:
        bits = [within(kind, -100, 100) for _ in range(60)]
        vs = [value(kind, b) for b in bits]
        product = Fraction(1)
        for v in vs[:6]:
            product *= v
        row("sum", [(kind, bits)], (kind, [rounded(kind, sum(vs))]))
        row("product", [(kind, bits[:6])], (kind, [rounded(kind, product)]))
        row("reduce_max", [(kind, bits)], (kind, [bits[vs.index(max(vs))]]))
        row("reduce_min", [(kind, bits)], (kind, [bits[vs.index(min(vs))]]))
        row("argmax", [(kind, bits)], ("s32", [vs.index(max(vs))]))
        row("argmin", [(kind, bits)], ("s32", [vs.index(min(vs))]))


def pair(real, imaginary):
    """A c64 of two f32, as bits."""
    return real | imaginary << 32


def exact_complex(count):
    """Complex numbers whose products are exact in f32, as pairs of rationals."""
    def part():
        return Fraction(random.choice([1, -1]) * random.getrandbits(random.randint(0, 11)), 1 << random.randint(0, 6))
    return [(part(), part()) for _ in range(count)]


def bits_of(numbers):
    return [pair(rounded("f32", a), rounded("f32", b)) for a, b in numbers]


def complex_numbers():
    for kind in [*INTEGERS, *FLOATS]:
        vs = values(kind, 20)
        row("as_type", [(kind, vs)], ("c64", [pair(cast(kind, "f32", v) if kind != "f32" else v, 0) for v in vs]))
        xs = float_bits("f32", 20)
        row("as_type", [("c64", [pair(x, y) for x, y in zip(xs, reversed(xs))])],
            (kind, [cast("f32", kind, x) if kind != "f32" else x for x in xs]))
    for op, f in {
        "add": lambda a, b, c, d: (a + c, b + d),
        "subtract": lambda a, b, c, d: (a - c, b - d),
        "multiply": lambda a, b, c, d: (a * c - b * d, a * d + b * c),
    }.items():
        xs, ys = exact_complex(24), exact_complex(24)
        row(op, [("c64", bits_of(xs)), ("c64", bits_of(ys))], ("c64", bits_of([f(*x, *y) for x, y in zip(xs, ys)])))
        reals = [x for x, _ in exact_complex(24)]
        row(op, [("f32", [rounded("f32", x) for x in reals]), ("c64", bits_of(ys))],
            ("c64", bits_of([f(x, 0, *y) for x, y in zip(reals, ys)])))
        whole = whole_numbers("s8", 24)
        row(op, [("c64", bits_of(xs)), ("s8", whole)], ("c64", bits_of([f(*x, Fraction(n), 0) for x, n in zip(xs, whole)])))
    xs = exact_complex(50)
    row("sum", [("c64", bits_of(xs))], ("c64", bits_of([(sum(x for x, _ in xs), sum(y for _, y in xs))])))
    # One row for both: whether each pair is equal.
    nan, zero, less_zero = rounded("f32", NAN), 0, 1 << 31
    xs = bits_of(exact_complex(6)) + [pair(nan, zero), pair(zero, less_zero), pair(less_zero, zero), pair(zero, nan)]
    ys = [xs[0], xs[1] ^ 1, xs[2] ^ 1 << 32, xs[3], xs[4] ^ 1 << 31, xs[5] ^ 1 << 63, xs[6], pair(less_zero, zero), 0, xs[9]]
    row("equality", [("c64", xs), ("c64", ys)], ("u8", [equal(x, y) for x, y in zip(xs, ys)]))
    for kind in ("s8", "s32", "u64", "s64", "f16", "f32", "f64"):
        vs = values(kind, 16)
        at = [cast(kind, "f32", v) if kind != "f32" else v for v in vs]
        xs = [pair(x, random.choice([0, 0, 1 << 31, 1 << 20])) for x in at]
        row("equality", [("c64", xs), (kind, vs)], ("u8", [int(same(x, kind, v)) for x, v in zip(xs, vs)]))


def equal(x, y):
    parts = [(value("f32", x >> s & 0xffffffff), value("f32", y >> s & 0xffffffff)) for s in (0, 32)]
    return int(all(a == b and a != NAN for a, b in parts))


def same(x, kind, v):
    real, imaginary = value("f32", x & 0xffffffff), value("f32", x >> 32)
    other = Fraction(v) if kind in INTEGERS else value(kind, v)
    return imaginary == 0 and real == other and real != NAN


casts()
integers()
comparisons()
functions()
pairs_of_floats()
reductions()
complex_numbers()
roundings()
