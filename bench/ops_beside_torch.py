#!/usr/bin/env python3
"""Times random requests of ops, ours beside PyTorch's: types, ranks, extents and axes that nobody tuned for.

Usage: ops_beside_torch.py [--count N] [--seed N] [--only FAMILY,...] [--below RATIO] [--nxv PATH]

How both are timed, and the ratio, is as in beside_torch.py; what PyTorch cannot put into a graph, as most of its linear algebra, is
timed in a row. Prints the requests whose ratio is below --below, and the median and the least ratio of each family. Products and
convolutions are in beside_torch.py. Needs PyTorch with CUDA.
"""

import argparse
import json
import math
import random
import statistics
import subprocess

import beside_torch
from beside_torch import shape

MOST = 2**25  # elements of a tensor
FLOATS = ["f32", "f32", "bf16", "f16", "f64"]
NUMBERS = [*FLOATS, "s32", "u8", "s64"]
BATCH = 10  # requests of one run of nxv


class Draw(random.Random):
    def extent(self, least=1, most=8192):
        """By its logarithm; three in ten are powers of two."""
        value = round(2 ** self.uniform(math.log2(least), math.log2(most)))
        if self.random() < 0.3:
            value = 2 ** round(math.log2(value))
        return min(max(value, least), most)

    def shape(self, rank, most=MOST):
        least, longest = 2 ** self.uniform(8, min(21, 12 * rank)), 8192 if rank > 1 else 2**22
        while True:
            extents = [self.extent(1, longest) for _ in range(rank)]
            if least <= math.prod(extents) <= most:
                return extents


class Torch(beside_torch.Torch):
    def __init__(self):
        super().__init__()
        torch = self.torch
        self.types |= {"s32": torch.int32, "s64": torch.int64, "u8": torch.uint8, "c64": torch.complex64}

    def tensor(self, extents, kind):
        if kind in ("s32", "s64", "u8"):
            return self.torch.randint(0, 100, extents, device="cuda").to(self.types[kind])
        if kind == "c64":
            return self.torch.randn(extents, device="cuda", dtype=self.types[kind])
        return super().tensor(extents, kind)

    def index(self, below, extents):
        return self.torch.randint(0, below, extents, device="cuda")

    def time(self, work):
        try:
            return super().time(work)
        except RuntimeError:  # It cannot be captured.
            self.torch.cuda.synchronize()
        work()
        once = self.between(work)
        runs = max(1, min(30, int(5000 / max(once, 1))))
        return statistics.median(self.between(lambda: [work() for _ in range(runs)]) / runs for _ in range(5))


def listed(numbers):
    return ",".join(map(str, numbers))


# Each draws a request for `nxv bench`, and what makes PyTorch's call of it.


def elementwise(draw):
    kind, extents = draw.choice(NUMBERS), draw.shape(draw.randint(1, 4))
    other = [1 if draw.random() < 0.35 else extent for extent in extents]
    op, name = draw.choice([("add", "add"), ("multiply", "mul"), ("max", "maximum")])

    def call(torch):
        a, b = torch.tensor(extents, kind), torch.tensor(other, kind)
        return lambda: getattr(torch.torch, name)(a, b)

    return f"{op} {kind}{shape(extents)} {kind}{shape(other)}", call


def unary(draw):
    kind, extents = draw.choice(FLOATS), draw.shape(draw.randint(1, 3))
    op = draw.choice(["exp", "tanh", "erf", "log1p", "sqrt", "sigmoid"])

    def call(torch):
        x = torch.tensor(extents, kind).abs()
        return lambda: getattr(torch.torch, op)(x)

    return f"{op} {kind}{shape(extents)}", call


def convert(draw):
    (kind, to), extents = draw.sample(sorted(set(NUMBERS)), 2), draw.shape(2)

    def call(torch):
        x = torch.tensor(extents, kind)
        return lambda: x.to(torch.types[to])

    return f"as_type {kind}{shape(extents)} -> {to}{shape(extents)}", call


def select(draw):
    kind, extents = draw.choice(NUMBERS), draw.shape(2)

    def call(torch):
        which = torch.tensor(extents, "u8") > 50
        a, b = torch.tensor(extents, kind), torch.tensor(extents, kind)
        return lambda: torch.torch.where(which, a, b)

    return f"select u8{shape(extents)} {kind}{shape(extents)} {kind}{shape(extents)}", call


def reduce(draw):
    kind, rank = draw.choice([*FLOATS, "s32"]), draw.randint(1, 4)
    extents, axes = draw.shape(rank), sorted(draw.sample(range(rank), draw.randint(1, rank)))
    op, name = draw.choice([("sum", "sum"), ("sum", "sum"), ("reduce_max", "amax")])

    def call(torch):
        x = torch.tensor(extents, kind)
        return lambda: getattr(x, name)(axes)

    return f"{op} {kind}{shape(extents)} axes={listed(axes)}", call


def along_axis(ops, kinds, most=MOST, **options):
    """Ops of one tensor along one axis, by the names that both have for them."""

    def family(draw):
        kind, rank = draw.choice(kinds), draw.randint(1, 3)
        extents, axis = draw.shape(rank, most), draw.randrange(rank)
        op, name = draw.choice(ops)

        def call(torch):
            x = torch.tensor(extents, kind)
            return lambda: getattr(torch.torch, name)(x, dim=axis, **options)

        return f"{op} {kind}{shape(extents)} axis={axis}", call

    return family


def top_k(draw):
    kind, extents = draw.choice(["f32", "bf16", "s32"]), draw.shape(2, 2**24)
    k = min(extents[1], draw.extent(1, 256))

    def call(torch):
        x = torch.tensor(extents, kind)
        return lambda: torch.torch.topk(x, k)

    return f"Nx.Block.TopK {kind}{shape(extents)} k={k}", call


def pool(draw):
    kind, (batch, channels) = draw.choice(["f32", "f32", "bf16", "f16"]), (draw.choice([1, 8, 32]), draw.extent(1, 32))
    side, window = draw.randint(8, 160), draw.choice([2, 3, 3, 5, 7])
    stride, op = draw.choice([1, 2, window]), draw.choice(["window_max", "window_sum"])
    extents = [batch, channels, side, side]

    def call(torch):
        x, functional = torch.tensor(extents, kind), torch.torch.nn.functional
        if op == "window_max":
            return lambda: functional.max_pool2d(x, window, stride)
        return lambda: functional.avg_pool2d(x, window, stride, divisor_override=1)

    return f"{op} {kind}{shape(extents)} window=1,1,{window},{window} strides=1,1,{stride},{stride}", call


def concatenate(draw):
    kind, rank = draw.choice(NUMBERS), draw.randint(1, 4)
    extents, axis = draw.shape(rank, 2**24), draw.randrange(rank)
    other = list(extents)
    other[axis] = draw.extent(1, max(1, 2**24 * extents[axis] // math.prod(extents)))

    def call(torch):
        a, b = torch.tensor(extents, kind), torch.tensor(other, kind)
        return lambda: torch.torch.cat([a, b], axis)

    return f"concatenate {kind}{shape(extents)} {kind}{shape(other)} axis={axis}", call


def pad(draw):
    kind, extents = draw.choice(NUMBERS), draw.shape(draw.randint(1, 4), 2**24)
    low, high = ([draw.randint(0, 3) for _ in extents] for _ in range(2))
    inner_first = [extent for pair in reversed(list(zip(low, high))) for extent in pair]

    def call(torch):
        x = torch.tensor(extents, kind)
        return lambda: torch.torch.nn.functional.pad(x, inner_first)

    return f"pad {kind}{shape(extents)} {kind}[] low={listed(low)} high={listed(high)}", call


def gather(draw):
    kind, extents = draw.choice(NUMBERS), draw.shape(2)
    rows = draw.extent(1, MOST // extents[1])

    def call(torch):
        x, index = torch.tensor(extents, kind), torch.index(extents[0], (rows,))
        return lambda: x[index]

    return f"gather {kind}{shape(extents)} s32[{rows},1] axes=0", call


def take_along_axis(draw):
    kind, rank = draw.choice(NUMBERS), draw.randint(1, 3)
    extents, axis = draw.shape(rank, 2**24), draw.randrange(rank)
    taken = list(extents)
    taken[axis] = draw.extent(1, max(1, 2**24 * extents[axis] // math.prod(extents)))

    def call(torch):
        x, index = torch.tensor(extents, kind), torch.index(extents[axis], taken)
        return lambda: torch.torch.gather(x, axis, index)

    return f"Nx.Block.TakeAlongAxis {kind}{shape(extents)} s32{shape(taken)} axis={axis}", call


def indexed_add(draw):
    kind, extents = draw.choice(["f32", "f32", "bf16", "f64", "s32"]), draw.shape(2, 2**24)
    rows = draw.extent(1, min(8192, 2**24 // extents[1]))

    def call(torch):
        x, updates = torch.tensor(extents, kind), torch.tensor([rows, extents[1]], kind)
        index = torch.index(extents[0], (rows,))
        return lambda: torch.torch.index_add(x, 0, index, updates)

    return f"indexed_add {kind}{shape(extents)} s32[{rows},1] {kind}{shape([rows, extents[1]])} axes=0", call


def fft(draw):
    length = draw.choice([draw.extent(2, 65536), draw.randint(2, 5000)])
    extents = [draw.extent(1, max(1, 2**22 // length)), length]
    op, name, kind = draw.choice([("fft", "fft", "c64"), ("Nx.Block.RFFT", "rfft", "f32")])

    def call(torch):
        x = torch.tensor(extents, kind)
        return lambda: getattr(torch.torch.fft, name)(x)

    return f"{op} {kind}{shape(extents)} length={length}", call


def linear_algebra(draw):
    op = draw.choice(["Cholesky", "LU", "QR", "Solve", "Eigh", "SVD", "Determinant"])
    side = draw.extent(2, 512 if op in ("Eigh", "SVD") else 1024)
    count = draw.extent(1, max(1, 2 ** (17 if op in ("Eigh", "SVD") else 21) // side**2))
    extents = [side, side] if count == 1 else [count, side, side]
    right = [*extents[:-1], 7]

    def call(torch):
        linalg, a, b = torch.torch.linalg, torch.tensor(extents, "f32"), torch.tensor(right, "f32")
        positive = a @ a.mT + side * torch.torch.eye(side, device="cuda")
        return {
            "Cholesky": lambda: linalg.cholesky_ex(positive),
            "LU": lambda: linalg.lu_factor_ex(positive),
            "QR": lambda: linalg.qr(a),
            "Solve": lambda: linalg.solve_ex(a, b),
            "Eigh": lambda: linalg.eigh(positive),
            "SVD": lambda: linalg.svd(a),
            "Determinant": lambda: linalg.det(a),
        }[op]

    return f"Nx.Block.LinAlg.{op} f32{shape(extents)}" + (f" f32{shape(right)}" if op == "Solve" else ""), call


FAMILIES = {
    "elementwise": elementwise,
    "unary": unary,
    "convert": convert,
    "select": select,
    "reduce": reduce,
    "arg": along_axis([("argmax", "argmax"), ("argmin", "argmin")], ["f32", "bf16", "f64", "s32"]),
    "scan": along_axis(
        [("Nx.Block.CumulativeSum", "cumsum"), ("Nx.Block.CumulativeProduct", "cumprod"), ("Nx.Block.CumulativeMax", "cummax")],
        ["f32", "f32", "bf16", "f64", "s32"],
    ),
    "sort": along_axis([("sort", "sort"), ("argsort", "argsort")], ["f32", "bf16", "f64", "s32", "u8"], 2**24, stable=True),
    "top_k": top_k,
    "pool": pool,
    "concatenate": concatenate,
    "pad": pad,
    "gather": gather,
    "take_along_axis": take_along_axis,
    "indexed_add": indexed_add,
    "fft": fft,
    "linear_algebra": linear_algebra,
}


def ours(nxv, requests):
    """Rows of `nxv bench`; where one of the requests ends the run those of each alone."""
    arguments = [argument for request in requests for argument in ("--request", request)]
    command = [nxv, "bench", "--json", "--quick", "--replayed", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)["results"]
    if len(requests) == 1:
        return [{"median_us": None, "note": done.stderr.strip()}]
    return [row for request in requests for row in ours(nxv, [request])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=170)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(FAMILIES))
    parser.add_argument("--below", type=float, default=0.5)
    parser.add_argument("--nxv", default="nxv")
    asked = parser.parse_args()
    draw, names = Draw(asked.seed), asked.only.split(",")
    all_names = [names[place % len(names)] for place in range(asked.count)]
    problems = [(name, *FAMILIES[name](draw)) for name in all_names]
    torch, ratios = Torch(), {name: [] for name in names}
    for begin in range(0, len(problems), BATCH):
        part = problems[begin : begin + BATCH]
        for (name, request, call), row in zip(part, ours(asked.nxv, [request for _, request, _ in part])):
            if row["median_us"] is None:
                print(f"{request}: {row['note']}", flush=True)
                continue
            try:
                peer = torch.time(call(torch))
            except RuntimeError as error:
                print(f"{request}: PyTorch: {str(error).splitlines()[0]}", flush=True)
                continue
            ratios[name].append(peer / row["median_us"])
            if ratios[name][-1] < asked.below:
                times = f"{row['median_us']:10.1f} {peer:10.1f} {ratios[name][-1]:6.2f}"
                print(f"{request:100} {times}  {row['served_by']}", flush=True)
        torch.torch.cuda.empty_cache()
    for name, found in ratios.items():
        if found:
            print(f"{name:16} {len(found):4} requests, median {statistics.median(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    main()
