#!/usr/bin/env python3
"""Opens our JFR files with readers from Maven: Mission Control's parser and async-profiler's converter.

    maven_readers_test.py WRITE_JFR_FILES

The jars are kept in the cache folder. Exit code 77 (skipped) if they cannot be had.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
CONVERTER = "tools.profiler:jfr-converter:4.5"
MISSION_CONTROL = "org.openjdk.jmc:flightrecorder:9.1.2"
EVENT_OF_KIND = {
    "cpu": "jdk.ExecutionSample",
    "wall": "spanprof.WallSample",
    "allocation": "jdk.ObjectAllocationSample",
    "lock": "jdk.JavaMonitorEnter",
}


def skip(why):
    print("SKIPPED:", why)
    sys.exit(SKIPPED)


def require(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, " ".join(command), "\n", done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def fetch(artifact):
    """The repository folder that holds the artifact and what it needs."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    repository = os.path.join(cache, "spanprof", "jfr-readers", artifact.replace(":", "-"))
    marker = os.path.join(repository, "complete")
    if not os.path.exists(marker):
        if shutil.which("mvn") is None:
            skip("mvn is not installed")
        done = subprocess.run(["mvn", "-q", "-B", "-Dmaven.repo.local=" + repository,
                               "dependency:get", "-Dartifact=" + artifact],
                              capture_output=True, text=True, check=False, timeout=900)
        if done.returncode != 0:
            skip(f"Maven cannot get {artifact}: {done.stdout[-300:]}")
        with open(marker, "w", encoding="utf-8"):
            pass
    return repository


def jars(repository, *groups):
    found = [jar for group in groups
             for jar in glob.glob(os.path.join(repository, group, "**", "*.jar"), recursive=True)]
    require(found, "no jars of", groups, "in", repository)
    return found


def samples_of(expected, kind):
    return [sample for sample in expected["samples"] if sample["kind"] == kind]


def check_converter(jar, path, expected, directory):
    """Collapsed stacks have a line for each stack, and count events, not weights."""
    output = os.path.join(directory, "out.collapsed")
    run("java", "-jar", jar, "-o", "collapsed", path, output)
    with open(output, encoding="utf-8") as file:
        lines = [line.rsplit(" ", 1) for line in file]
    wanted = [s for s in samples_of(expected, "cpu") if s["frames"]]
    require(sum(int(count) for _, count in lines) == len(wanted), path, "converter counted",
            sum(int(count) for _, count in lines), "of", len(wanted))
    leaves = {stack.split(";")[-1] for stack, _ in lines}
    for sample in wanted:
        require(sample["frames"][0][1] in leaves, path, "no stack ends in", sample["frames"][0])
    run("java", "-jar", jar, "-o", "html", path, os.path.join(directory, "out.html"))


def check_mission_control(classpath, path, expected):
    found = {}
    lines = run("java", "-cp", classpath, os.path.join(HERE, "JmcReader.java"), path).splitlines()
    for line in lines:
        name, *numbers = line.split()
        # In the form with structures, a chunk's type may have a UUID behind its name.
        name = next((known for known in EVENT_OF_KIND.values() if name.startswith(known)), name)
        require(not expected["flat"] or name not in found, path, "two types called", name)
        sums = found.setdefault(name, [0] * len(numbers))
        found[name] = [a + int(b) for a, b in zip(sums, numbers)]
    for kind, name in EVENT_OF_KIND.items():
        wanted = samples_of(expected, kind)
        events, weight, frames, _, times, contexts = found[name]
        require(events == len(wanted), path, name, "events", events, len(wanted))
        require(times == len(wanted), path, name, "times", times)
        require(frames == sum(len(s["frames"]) for s in wanted), path, name, "frames", frames)
        if kind in ("cpu", "wall"):
            require(weight == sum(s["count"] for s in wanted), path, name, "weights", weight)
        if not expected["flat"]:
            require(contexts == sum(s["context"] is not None for s in wanted), path, name,
                    "contexts", contexts)


def main():
    if shutil.which("java") is None:
        skip("java is not installed")
    converter = jars(fetch(CONVERTER), "tools/profiler/jfr-converter")[0]
    classpath = ":".join(jars(fetch(MISSION_CONTROL), "org/openjdk/jmc", "org/owasp/encoder",
                              "at/yawk/lz4"))
    with tempfile.TemporaryDirectory() as directory:
        run(sys.argv[1], directory)
        for path in sorted(glob.glob(os.path.join(directory, "*.jfr"))):
            with open(path[:-len("jfr")] + "json", encoding="utf-8") as file:
                expected = json.load(file)
            check_converter(converter, path, expected, directory)
            check_mission_control(classpath, path, expected)
            print(os.path.basename(path), len(expected["samples"]), "samples: same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
