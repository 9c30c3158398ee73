#!/usr/bin/env python3
"""Reads a flight recording that a JDK made with our reader, and compares it with the JDK's own.

    jdk_recording_test.py MAJOR_VERSION READ_JFR_FILE

Exit code 77 (skipped) if that JDK is not there.
"""

import json
import os
import sys
import tempfile
import time

from jdk_tools_test import HERE, SKIPPED, find_jdk, require, run

# The JDK's name, and our kind of sample.
KIND_OF_EVENT = {
    "jdk.ObjectAllocationSample": "allocation",
    "jdk.ExecutionSample": "cpu",
    "jdk.CPUTimeSample": "cpu",
    "jdk.JavaMonitorEnter": "lock",
}


def record(home, directory, settings):
    path = os.path.join(directory, "recording.jfr")
    if os.path.exists(path):
        os.remove(path)
    run(os.path.join(home, "bin", "java"), "-Xint" if settings else "-Xmixed",
        f"-XX:StartFlightRecording=filename={path},settings=profile{settings}",
        os.path.join(HERE, "Busy.java"))
    return path


def check(home, reader, path):
    events = json.loads(run(os.path.join(home, "bin", "jfr"), "print", "--json", "--events",
                            ",".join(KIND_OF_EVENT), path))["recording"]["events"]
    ours = json.loads(run(reader, path))
    if any(e["type"] == "jdk.CPUTimeSample" for e in events):
        # The older sampler's samples are of the same time, and not read.
        events = [e for e in events if e["type"] != "jdk.ExecutionSample"]
    for kind in set(KIND_OF_EVENT.values()):
        theirs = [e for e in events if KIND_OF_EVENT[e["type"]] == kind]
        got = ours["kinds"].get(kind, {"samples": 0, "with_stack": 0})
        require(got["samples"] == len(theirs), kind, "samples", got, len(theirs))
        with_stack = sum(1 for e in theirs if e["values"].get("stackTrace"))
        require(got["with_stack"] == with_stack, kind, "stacks", got, with_stack)
    samples = [e for e in events if KIND_OF_EVENT[e["type"]] == "cpu"]
    require(len(samples) > 20, "the JDK took only", len(samples), "samples")
    spins = sum(any(f["method"]["name"] == "spin" for f in e["values"]["stackTrace"]["frames"])
                for e in samples if e["values"].get("stackTrace"))
    require(ours["functions"].get("Busy.spin", 0) >= spins, "spin", ours["functions"], spins)
    require(ours["threads"].get("busy", 0) > 0, "threads", ours["threads"])
    require(ours["kinds"]["cpu"]["value"] > 0, "no time: the period was not found")
    require(abs(ours["start_ns"] - time.time_ns()) < 600e9, "start", ours["start_ns"])
    print(len(events), "events of the JDK:", json.dumps(ours["kinds"]))


def main():
    major, reader = sys.argv[1:]
    home = find_jdk(major)
    if home is None:
        print(f"SKIPPED: no JDK {major} with bin/jfr in /usr/lib/jvm or JAVA_HOME")
        return SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        check(home, reader, record(home, directory, ""))
        if int(major) >= 25:
            check(home, reader, record(home, directory, ",jdk.CPUTimeSample#enabled=true"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
