#!/usr/bin/env python3
"""Times random matrix products or convolutions, ours beside PyTorch's, on sizes that nobody tuned for.

Usage: beside_torch.py {products,convolutions} [--count N] [--seed N] [--types f32,f16] [--nxv PATH] [--batch N]

Both are timed as a compiled function runs them: ours recorded (`nxv bench --replayed`), PyTorch's in a CUDA graph, operands on
the device, f32 without TF32. The two take turns every --batch problems, so that the clock of a warm card favours neither. The ratio is
PyTorch's time divided by ours: above 1 we are faster. Needs PyTorch with CUDA.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import sys

SIDE = 8192  # of a product, at most
ELEMENTS = 2**28  # elements of all operands of one problem, at most
WORK = 4e12  # multiply-adds of one problem, at most: some seconds of f64


def extent(draw, limit=SIDE):
    """Half of the extents are uniform, half by their logarithm, of which some are powers of two and some multiples of 16."""
    if draw.random() < 0.5:
        return draw.randint(1, limit)
    value = round(2 ** draw.uniform(0, math.log2(limit)))
    kind = draw.random()
    if kind < 0.25:
        return 2 ** round(math.log2(value))
    return max(16, value // 16 * 16) if kind < 0.5 else value


def product(draw, kind):
    """A request for `nxv bench`, and what PyTorch multiplies: shapes and whether each is transposed."""
    while True:
        batch = draw.choice([1, 1, 1, extent(draw, 256)])
        m, k, n = (extent(draw) for _ in range(3))
        if batch * (m * k + k * n + m * n) < ELEMENTS and batch * m * k * n < WORK:
            break
    layout = draw.choice(["NN", "NT", "TN", "TT"])
    left, right = ([m, k], [k, n])
    left = left[::-1] if layout[0] == "T" else left
    right = right[::-1] if layout[1] == "T" else right
    shift = 0 if batch == 1 else 1
    if shift:
        left, right = [batch, *left], [batch, *right]
    attributes = f"contract_a={shift + (layout[0] == 'N')} contract_b={shift + (layout[1] == 'T')}"
    attributes += " batch_a=0 batch_b=0" if shift else ""
    request = f"dot {kind}{shape(left)} {kind}{shape(right)} {attributes}"
    return request, f"{kind} {batch}x {m}x{k}x{n} {layout}", (left, right, layout)


def convolution(draw, kind):
    """The same of a convolution of two spatial axes, channels first as PyTorch's are."""
    while True:
        batch = draw.choice([1, 2, 8, 16, 32, 64])
        channels, filters = extent(draw, 512), extent(draw, 512)
        size = draw.randint(7, 112)
        window = draw.choice([1, 3, 3, 3, 5, 7])
        stride = draw.choice([1, 1, 2])
        results = (size + window // 2 * 2 - window) // stride + 1
        if size >= window and batch * results**2 * channels * filters * window**2 < 2e11:
            break
    left, right = [batch, channels, size, size], [filters, channels, window, window]
    edge = window // 2
    request = (
        f"conv {kind}{shape(left)} {kind}{shape(right)} strides={stride},{stride} padding={edge},{edge},{edge},{edge}"
    )
    return request, f"{kind} {batch}x{channels}x{size}^2 {window}x{window} /{stride} to {filters}", (left, right, stride)


def shape(extents):
    return "[" + ",".join(map(str, extents)) + "]"


def ours(nxv, requests):
    arguments = [argument for request in requests for argument in ("--request", request)]
    done = subprocess.run(
        [nxv, "bench", "--json", "--quick", "--replayed", *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)["results"]


class Torch:
    """PyTorch's time of a problem, in a graph of as many runs as take a few milliseconds."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self.types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}

    def tensor(self, extents, kind):
        return self.torch.randn(extents, device="cuda", dtype=self.torch.float32).to(self.types[kind])

    def product(self, problem, kind):
        left, right, layout = problem
        left, right = self.tensor(left, kind), self.tensor(right, kind)
        left = left.mT if layout[0] == "T" else left
        right = right.mT if layout[1] == "T" else right
        return self.time(lambda: self.torch.matmul(left, right))

    def convolution(self, problem, kind):
        left, right, stride = problem
        edge = right[2] // 2
        left, right = self.tensor(left, kind), self.tensor(right, kind)
        return self.time(lambda: self.torch.nn.functional.conv2d(left, right, stride=stride, padding=edge))

    def time(self, work):
        cuda = self.torch.cuda
        stream = cuda.Stream()
        with cuda.stream(stream):
            for _ in range(3):
                work()
            once = self.between(work)
            graph = cuda.CUDAGraph()
            runs = max(1, min(50, int(5000 / max(once, 1))))
            with cuda.graph(graph, stream=stream):
                for _ in range(runs):
                    work()
            graph.replay()
            return statistics.median(self.between(graph.replay) / runs for _ in range(7))

    def between(self, work):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=["products", "convolutions"])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--types", default="f32")
    parser.add_argument("--nxv", default="nxv")
    parser.add_argument("--batch", type=int, default=10)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    kinds = asked.types.split(",")
    make = product if asked.family == "products" else convolution
    problems = [(kind, *make(draw, kind)) for kind in (draw.choice(kinds) for _ in range(asked.count))]
    torch = Torch()
    theirs = torch.product if asked.family == "products" else torch.convolution
    ratios = {kind: [] for kind in kinds}
    for begin in range(0, len(problems), asked.batch):
        part = problems[begin : begin + asked.batch]
        rows = ours(asked.nxv, [request for _, request, _, _ in part])
        for (kind, request, name, problem), row in zip(part, rows):
            if row["median_us"] is None:
                sys.exit(f"{request}: {row['note']}")
            peer = theirs(problem, kind)
            ratios[kind].append(peer / row["median_us"])
            print(f"{name:44} {row['median_us']:12.1f} {peer:12.1f} {ratios[kind][-1]:6.2f}  {row['served_by']}", flush=True)
        torch.torch.cuda.empty_cache()
    for kind, found in ratios.items():
        if found:
            print(f"{kind}: {len(found)} {asked.family}, median {statistics.median(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    main()
