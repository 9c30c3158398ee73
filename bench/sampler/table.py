#!/usr/bin/env python3
"""Makes the tables of docs/benchmarks.md from what bench/sampler/run gathered."""

import json
import os
import statistics
import sys

NAMES = {"empty": "an empty handler", "spanprof": "spanprof", "gperftools": "gperftools",
         "perf": "perf record -g"}


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def a_sample(run):
    samples = run["samples_a_window"]
    return run["added_ns"] / samples / 1000 if samples else None


def spread(values, form):
    if not values:
        return ""
    return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"


def table(runs, column, title, unit):
    """A row for each profiler, a group of rows for each value of the column."""
    print(f"\n**{title}**\n")
    print(f"| {unit} | profiler | samples a second | CPU time added | us a sample | above the empty handler |")
    print("|---|---|---|---|---|---|")
    for value in dict.fromkeys(run[column] for run in runs):
        floor = [a_sample(run) for run in runs if run[column] == value and run["profiler"] == "empty"]
        for profiler, name in NAMES.items():
            mine = [run for run in runs if run[column] == value and run["profiler"] == profiler]
            if not mine:
                continue
            if "skipped" in mine[0]:
                print(f"| {value} | {name} | skipped: {mine[0]['skipped']} | | | |")
                continue
            rates = [run["samples_a_window"] / run["on_ns"] * 1e9 for run in mine]
            added = [run["added_ns"] / run["off_ns"] * 100 for run in mine]
            costs = [cost for cost in map(a_sample, mine) if cost is not None]
            # Rounds stand side by side, so each is compared with its own floor.
            above = [cost - low for cost, low in zip(costs, floor) if low is not None]
            rate = f"{statistics.median(rates):.0f}" if any(rates) else "as asked"
            print(f"| {value} | {name} | {rate} | {spread(added, lambda x: f'{x:.2f} %')} | "
                  f"{spread(costs, lambda x: f'{x:.2f}')} | "
                  f"{spread(above, lambda x: f'{x:.2f}') if profiler not in ('empty', 'perf') else ''} |")


def formats(rows):
    print("\n**What a profile costs to keep**\n")
    print(f"{rows[0]['samples']} samples of a web service under load, with their spans and endpoints.\n")
    print("| format | bytes a sample | CPU ms a file | files a second |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {row['format']} | {row['bytes'] / row['samples']:.1f} | {row['seconds'] * 1000:.1f} | "
              f"{1 / row['seconds']:.0f} |")


def main(folder):
    table(read(os.path.join(folder, "rates.jsonl")), "hertz", "By rate, 20 frames deep", "Hz asked for")
    table(read(os.path.join(folder, "depths.jsonl")), "depth", "By depth, at 1000 Hz", "frames")
    formats(read(os.path.join(folder, "formats.jsonl")))


if __name__ == "__main__":
    main(sys.argv[1])
