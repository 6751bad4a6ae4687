#!/usr/bin/env python3
"""Puts two results side by side: `nxv bench --json` against itself or against other libraries.

Usage: compare.py NXV.json OTHER.json

OTHER is another result of `nxv bench --json`, or {"device": ..., "results": {name: {library: {"us": ...}}}}.
The ratio is OTHER's time divided by ours: above 1 we are faster. Exits with 1 when no name occurs in both.
"""

import json
import sys


def read(path):
    """The device, and {name: {column: microseconds}} of a result of either form."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    results = data["results"]
    if isinstance(results, list):
        rows = {row["name"]: {"nxv": row["median_us"]} for row in results if row["median_us"] is not None}
    else:
        rows = {name: {peer: row["us"] for peer, row in peers.items()} for name, peers in results.items()}
    return data.get("device", "unknown device"), rows


def table(ours, others):
    """Lines of the table, and how many names both have."""
    columns = sorted({column for row in others.values() for column in row})
    head = f"{'':28} {'us':>12}" + "".join(f" {column:>12} {'ratio':>6}" for column in columns)
    lines, common = [head], 0
    for name, row in ours.items():
        other = others.get(name, {})
        common += bool(other)
        cells = ""
        for column in columns:
            us = other.get(column)
            cells += f" {us:12.2f} {us / row['nxv']:6.2f}" if us is not None else f" {'-':>12} {'-':>6}"
        lines.append(f"{name:28} {row['nxv']:12.2f}{cells}")
    return lines, common


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    (device, ours), (other_device, others) = map(read, arguments)
    lines, common = table(ours, others)
    print(f"{device} against {other_device}")
    print("\n".join(lines))
    return 0 if common else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
