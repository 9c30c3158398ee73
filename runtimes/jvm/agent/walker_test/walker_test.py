#!/usr/bin/env python3
"""Runs a Java program with the walker test agent, and checks what the walkers found.

  walker_test.py --agent libspanprof-walker-test.so --jdk 17 --program CallTree [--both]
                 [--seconds 3] [--java-option=-Xint]... [--argument yield]...

Nothing here depends on how fast the machine is: stacks are checked by what they contain, and by how
many of them are whole. Exit code 77: there is no such JDK (the reason is the last line).
"""

import argparse
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
# Of so many stacks at least.
FEWEST_WALKS = 100
# How many of a hundred have to be whole, or end where a virtual thread's frames are in the heap.
ENDED_RIGHT = 98
# Of a hundred that both walkers call whole, so many may differ: AsyncGetCallTrace gives the caller
# of a stub the next line's methods, and leaves out a frame that is not made yet.
MAY_DIFFER = 8


def find_jdk(version):
    homes = [os.environ.get("JAVA_HOME", "")] + sorted(glob.glob("/usr/lib/jvm/*"))
    for home in homes:
        release = pathlib.Path(home, "release") if home else None
        if not release or not release.is_file() or not pathlib.Path(home, "bin/javac").exists():
            continue
        if re.search(r'JAVA_VERSION="%d[."]' % version, release.read_text()):
            return pathlib.Path(home)
    return None


def read_summary(path):
    numbers, notes = {}, []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            notes.append(line)
        else:
            name, _, value = line.rpartition(" ")
            if not value.isdigit():
                sys.exit(f"the agent says: {line}")
            numbers[name] = int(value)
    return numbers, notes


def check(numbers, options):
    problems = []

    def need(holds, text):
        if not holds:
            problems.append(text)

    walks = numbers.get("hotspot.walks", 0)
    frozen = numbers.get("hotspot.failure.frozen_frames", 0)
    ended = numbers.get("hotspot.complete", 0) + frozen
    need(walks >= FEWEST_WALKS, f"only {walks} stacks were walked, {FEWEST_WALKS} are needed")
    need(ended * 100 >= walks * ENDED_RIGHT, f"{ended} of {walks} stacks end where they should")
    need(numbers.get("hotspot.with_java", 0) * 100 >= walks * 95,
         f"{numbers.get('hotspot.with_java', 0)} of {walks} stacks have Java frames")
    need(numbers.get("hotspot.no_method", 0) == 0,
         f"{numbers.get('hotspot.no_method')} stacks have a word that is no jmethodID")
    need(frozen == 0 or options.program == "VirtualThreads",
         f"{frozen} stacks of plain threads have frozen frames")
    if options.program == "CallTree":
        checked, wrong = numbers["hotspot.tree_checked"], numbers["hotspot.tree_wrong"]
        need(checked * 2 >= walks, f"only {checked} of {walks} stacks were in the tree")
        need(wrong == 0, f"{wrong} of {checked} stacks have a method under the wrong caller")
    if options.program == "VirtualThreads":
        checked, wrong = numbers["hotspot.virtual_checked"], numbers["hotspot.virtual_wrong"]
        need(checked * 4 >= walks, f"only {checked} of {walks} stacks are of virtual threads")
        need(wrong == 0, f"{wrong} of {checked} virtual threads have other frames than they should")
        if "-XX:+UseZGC" not in options.java_option:
            need(frozen * 100 <= walks * 40,
                 f"the frozen frames of {frozen} of {walks} are missing")
    if options.both:
        need(numbers.get("asgct.walks", 0) == walks, "the walkers did not walk the same stacks")
        need(numbers.get("asgct.no_method", 0) == 0,
             f"{numbers.get('asgct.no_method')} stacks of asgct have a word that is no jmethodID")
        need(numbers.get("hotspot.complete", 0) + frozen + walks // 100 >=
             numbers.get("asgct.complete", 0), "AsyncGetCallTrace has more whole stacks")
        both, different = numbers["both.complete"], numbers["both.different"]
        need(different * 100 <= both * MAY_DIFFER, f"{different} of {both} whole stacks differ")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", required=True)
    parser.add_argument("--jdk", type=int, required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--java-option", action="append", default=[])
    parser.add_argument("--argument", action="append", default=[])
    options = parser.parse_args()

    home = find_jdk(options.jdk)
    if home is None:
        print(f"skipped: there is no JDK {options.jdk} in JAVA_HOME or under /usr/lib/jvm")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        subprocess.run([home / "bin/javac", "-d", work, HERE / f"{options.program}.java"],
                       check=True)
        summary = work / "summary"
        agent_options = ("both," if options.both else "") + f"summary={summary}"
        command = [home / "bin/java", f"-agentpath:{options.agent}={agent_options}",
                   "-Xmx512m", *options.java_option, "-cp", work, options.program,
                   str(int(options.seconds * 1000)), *options.argument]
        ended = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=240)
        if ended.returncode != 0 or not summary.exists():
            print(ended.stdout[-4000:])
            print(f"java ended with {ended.returncode}")
            return 1
        numbers, notes = read_summary(summary)
        problems = check(numbers, options)
        for name, value in numbers.items():
            print(f"{name} {value}")
        for note in notes if problems else []:
            print(note[:2000])
        for problem in problems:
            print(f"FAILED: {problem}")
        return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
