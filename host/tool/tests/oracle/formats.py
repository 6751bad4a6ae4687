"""Integers and floats of Nx as exact numbers: their bounds, roundings and casts, and elements to try them on."""
import random
from fractions import Fraction

INTEGERS = {f"{s}{n}": (s == "s", n) for n in (8, 16, 32, 64) for s in "us"}
# Bits of the significand, lowest exponent of a normal number.
FLOATS = {"f16": (11, -14), "bf16": (8, -126), "f32": (24, -126), "f64": (53, -1022)}
NAN, INF = "nan", "inf"


def bounds(kind):
    signed, bits = INTEGERS[kind]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def wrap(kind, n):
    low, high = bounds(kind)
    return (n - low) % (high - low + 1) + low


def rounded(kind, x, negative_zero=False):
    """The float next to a rational, ties to even, as its bits."""
    precision, least = FLOATS[kind]
    top = 8 * size(kind) - 1
    exponents = ((1 << top - precision + 1) - 1) << (precision - 1)
    if isinstance(x, str):
        return exponents | {NAN: 1 << precision - 2, INF: 0, "-inf": 1 << top}[x]
    sign = (x < 0 or negative_zero) << top
    x = abs(x)
    if x == 0:
        return sign
    e = max(floor_log2(x), least)
    scaled = x / Fraction(2) ** (e - precision + 1)
    n = int(scaled)
    rest = scaled - n
    n += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n & 1)
    bits = n + ((e - least) << (precision - 1))
    return sign | min(bits, exponents)


def floor_log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def value(kind, bits):
    """What bits of a float stand for: a Fraction, or one of the texts; the sign of a zero is lost."""
    precision, least = FLOATS[kind]
    top = 8 * size(kind) - 1
    sign = -1 if bits >> top else 1
    magnitude = bits & ((1 << top) - 1)
    exponent, fraction = magnitude >> (precision - 1), magnitude & ((1 << precision - 1) - 1)
    if exponent == (1 << top - precision + 1) - 1:
        return NAN if fraction else (INF if sign > 0 else "-inf")
    if exponent:
        fraction |= 1 << (precision - 1)
    return sign * Fraction(fraction) * Fraction(2) ** (max(exponent, 1) - 1 + least - precision + 1)


def size(kind):
    return 2 if kind in ("f16", "bf16") else int(kind[1:]) // 8


def element(kind, bits):
    return (bits % (1 << 8 * size(kind))).to_bytes(size(kind), "little").hex()


def whole_numbers(kind, count):
    """Bounds, small ones, neighbours of powers of two, then random ones of every size."""
    low, high = bounds(kind)
    fixed = [low, high, 0, 1, high - 1, high // 2 + 1, 3]
    fixed += [low + 1, -1, -3] if low < 0 else []
    some = []
    while len(fixed) + len(some) < count:
        n = random.getrandbits(random.randint(1, INTEGERS[kind][1]))
        some.append(wrap(kind, random.choice([n, -n])))
    return (fixed + some)[:count]


def float_bits(kind, count):
    precision, _ = FLOATS[kind]
    bits = 8 * size(kind)
    one = rounded(kind, Fraction(1))
    top = rounded(kind, INF)
    fixed = [0, 1 << bits - 1, one, one | 1 << bits - 1, top, top | 1 << bits - 1, top | 1, top - 1, 1,
             1 << precision - 1, rounded(kind, Fraction(5, 2)), rounded(kind, Fraction(-1, 2))]
    some = []
    while len(fixed) + len(some) < count:
        if random.random() < 0.3:
            some.append(random.getrandbits(bits))
        else:
            e = random.randint(-3, 66 if bits > 16 else 12)
            x = Fraction(random.getrandbits(60) | 1 << 60, 1 << 60) * Fraction(2) ** e
            some.append(rounded(kind, random.choice([x, -x])))
    return (fixed + some)[:count]


def cast(source, target, v):
    if source in INTEGERS:
        return wrap(target, v) if target in INTEGERS else rounded(target, Fraction(v))
    x = value(source, v)
    negative = bool(v >> (8 * size(source) - 1))
    if target in INTEGERS:
        low, high = bounds(target)
        if x in (NAN, INF, "-inf"):
            return {NAN: 0, INF: high, "-inf": low}[x]
        return max(low, min(high, int(x)))
    return rounded(target, x, negative_zero=negative and x == 0)


def values(kind, count):
    return whole_numbers(kind, count) if kind in INTEGERS else float_bits(kind, count)
