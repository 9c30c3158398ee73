#!/usr/bin/env python3
"""Opens our JFR files with the tools of a JDK and compares what they say with the model.

    jdk_tools_test.py MAJOR_VERSION WRITE_JFR_FILES

WRITE_JFR_FILES is the program that writes the files. Exit code 77 (skipped) if that JDK is not there.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
EVENT_OF_KIND = {
    "cpu": "jdk.ExecutionSample",
    "wall": "spanprof.WallSample",
    "allocation": "jdk.ObjectAllocationSample",
    "lock": "jdk.JavaMonitorEnter",
}


def find_jdk(major):
    """The home of a JDK of that version, or None."""
    for home in sorted(glob.glob("/usr/lib/jvm/*")) + [os.environ.get("JAVA_HOME", "")]:
        if not os.access(os.path.join(home, "bin", "jfr"), os.X_OK):
            continue
        run = subprocess.run([os.path.join(home, "bin", "java"), "-version"],
                             capture_output=True, text=True, check=False)
        if re.search(r'version "%s[."]' % major, run.stderr):
            return home
    return None


def require(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, " ".join(command), "\n", done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def expected_counts(expected):
    counts = {name: 0 for name in EVENT_OF_KIND.values()}
    for sample in expected["samples"]:
        counts[EVENT_OF_KIND[sample["kind"]]] += 1
    return counts


def check_summary(jfr, path, expected):
    text = run(jfr, "summary", path)
    chunks = re.search(r"Chunks: (\d+)", text)
    # Behind each there is an empty one; see WriteSeparator in src/format/jfr_writer.cc.
    require(chunks and int(chunks[1]) == 2 * expected["chunks"], path, "chunks", text)
    for name, count in expected_counts(expected).items():
        row = re.search(r"^ %s +(\d+)" % re.escape(name), text, re.M)
        require(row and int(row[1]) == count, path, "summary of", name, row and row[1], count)


def check_metadata(jfr, path):
    text = run(jfr, "metadata", path)
    for name in EVENT_OF_KIND.values():
        # @Name("jdk.ExecutionSample"), or the class where the name follows from it.
        require(name in text or "class " + name.split(".")[-1] in text, path, "no metadata of", name)


def check_print(jfr, path, expected):
    # The JDK 25 sorts by time, 17 does not.
    events = json.loads(run(jfr, "print", "--json", path))["recording"]["events"]
    counters = sorted([e["values"]["name"], e["values"]["value"]]
                      for e in events if e["type"] == "spanprof.Counter")
    require(counters == sorted(expected["counters"]), path, "counters", counters)
    for name, count in expected_counts(expected).items():
        found = [e["values"] for e in events if e["type"] == name]
        require(len(found) == count, path, "printed", name, len(found), count)
    spans = [span_of(e["values"]) for e in events if e["type"] in EVENT_OF_KIND.values()]
    wanted = [(s["context"] or {}).get("spanId", 0) for s in expected["samples"]]
    require(sorted(spans) == sorted(wanted), path, "span ids differ")


def span_of(values):
    if "context" in values:
        return (values["context"] or {}).get("spanId", 0)
    return values["spanId"]


def comparable(sample, flat):
    context = sample["context"]
    if context is not None:
        context = dict(context)
        context["tags"] = context.get("tags") or {}
        for name in ("traceId", "endpoint"):
            context[name] = context[name] or ""
        if context["traceId"] == "0" * 32:
            context["traceId"] = ""
    if flat and (context is None or not any(context[n] for n in ("spanId", "traceId"))):
        context = None  # the flat form cannot tell "none" from an empty one
    return json.dumps([sample["time_ns"], sample["thread"], sample["tid"], sample["count"],
                       sample["value"], sample["folded"], context, sample["frames"]],
                      sort_keys=True)


def check_consumer(java, path, expected):
    lines = run(java, os.path.join(HERE, "Reader.java"), path).splitlines()
    flat = expected["flat"]
    found = sorted(comparable(json.loads(line), flat) for line in lines)
    wanted = sorted(comparable(sample, flat) for sample in expected["samples"])
    require(len(found) == len(wanted), path, "consumer read", len(found), "of", len(wanted))
    for got, want in zip(found, wanted):
        require(got == want, path, "\n got ", got, "\n want", want)


def main():
    major, writer = sys.argv[1:]
    home = find_jdk(major)
    if home is None:
        print(f"SKIPPED: no JDK {major} with bin/jfr in /usr/lib/jvm or JAVA_HOME")
        return SKIPPED
    jfr, java = (os.path.join(home, "bin", tool) for tool in ("jfr", "java"))
    with tempfile.TemporaryDirectory() as directory:
        run(writer, directory)
        paths = sorted(glob.glob(os.path.join(directory, "*.jfr")))
        require(len(paths) == 8, "files written", paths)
        for path in paths:
            with open(path[:-len("jfr")] + "json", encoding="utf-8") as file:
                expected = json.load(file)
            check_summary(jfr, path, expected)
            check_metadata(jfr, path)
            check_print(jfr, path, expected)
            check_consumer(java, path, expected)
            print("JDK", major, os.path.basename(path), len(expected["samples"]), "samples: same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
