#!/usr/bin/env python3
"""Makes the table of docs/benchmarks.md from google-benchmark's JSON files, and one JSON of all."""

import glob
import json
import os
import statistics
import sys

MODES = {"none": "not initialised", "profiler": "ctxstorage=profiler", "otel": "ctxstorage=otel"}


def read(folder):
    """CPU nanoseconds of each round, by (mode, threads, row)."""
    times = {}
    for path in sorted(glob.glob(os.path.join(folder, "*-[0-9]*.json"))):
        mode = os.path.basename(path).split("-")[0]
        with open(path) as file:
            for result in json.load(file)["benchmarks"]:
                name, *rest = result["name"].split("/")
                threads = next((int(part[8:]) for part in rest if part.startswith("threads:")), 2)
                # Rows that time themselves report it as real time.
                manual = any(part.startswith("manual_time") for part in rest)
                value = result["real_time"] if manual else result["cpu_time"]
                times.setdefault((mode, threads, name), []).append(value)
    return times


def main(folder):
    times = read(folder)
    summary = []
    for mode, title in MODES.items():
        for threads in (1, 2):
            rows = [(name, values) for (m, t, name), values in times.items() if (m, t) == (mode, threads)]
            if not rows:
                continue
            floor = times.get((mode, threads, "floor"))
            print(f"\n**{title}, {threads} thread{'s' if threads > 1 else ''}**\n")
            print("| call | ns, median | least | most | of the floor |")
            print("|---|---|---|---|---|")
            for name, values in rows:
                median = statistics.median(values)
                # Each round's ratio is of figures taken seconds apart, so noise cancels.
                ratio = (statistics.median(v / f for v, f in zip(values, floor))
                         if floor and len(floor) == len(values) else None)
                shown = f"{ratio:.2f}x" if ratio is not None else ""
                print(f"| {name} | {median:.2f} | {min(values):.2f} | {max(values):.2f} | {shown} |")
                summary.append({"mode": mode, "threads": threads, "call": name, "median_ns": median,
                                "least_ns": min(values), "most_ns": max(values), "of_floor": ratio})
    with open(os.path.join(folder, "summary.json"), "w") as file:
        json.dump(summary, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
