"""`go tool pprof` reads our pprof files; its numbers and labels are compared with the model's."""

import re
import subprocess

import reader_test

VALUE_NAMES = {"cpu": "cpu", "wall": "wall", "allocation": "alloc_space", "lock": "delay"}


def find_pprof(go):
    """The program behind `go tool pprof`: newer Go looks for changes to its sources at each call."""
    done = subprocess.run([go, "tool", "-n", "pprof"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reader_test.fail(f"go tool -n pprof: {done.stderr}")
    return done.stdout.strip()


def run(pprof, *arguments):
    done = subprocess.run([pprof, "-symbolize=none", *arguments],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reader_test.fail(f"go tool pprof {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def flat_of_top(text):
    """The sum of the column `flat`, which is in a fixed unit, and what pprof says of the total."""
    flat = 0
    in_table = False
    for line in text.splitlines():
        # A name may hold a line break, so not every line is a row.
        row = re.match(r"\s*(\d+)(?:ns|B)?\s+[\d.]+%\s+[\d.]+%", line)
        if in_table and row:
            flat += int(row.group(1))
        elif line.split() == ["flat", "flat%", "sum%", "cum", "cum%"]:
            in_table = True
    total = re.search(r"of (\d+)\w* total", text)
    return flat, int(total.group(1)) if total else None


def main():
    pprof = find_pprof(reader_test.find_go())
    folder = reader_test.written_files()
    for path, expected in reader_test.profiles(folder):
        file = str(path.with_suffix(".pb.gz"))
        raw = run(pprof, "-raw", file)
        # An older one, such as Go 1.19's, prints no sample that has no stack.
        whole = re.search(r"^\s+\d+(?:\s+\d+)*: *$", raw, re.MULTILINE) is not None
        kept = [s for s in expected["samples"] if whole or s["frames"]]
        for kind, name in VALUE_NAMES.items():
            sums = expected["functions"][kind]
            if not sums:
                continue
            unit = "-unit=bytes" if kind == "allocation" else "-unit=nanoseconds"
            text = run(pprof, "-top", f"-sample_index={name}", unit, "-nodecount=1000000",
                       "-nodefraction=0", "-edgefraction=0", file)
            # A sample without a stack is in pprof's total, but in no line of its table.
            written = sum(self for self, _ in sums.values())
            without_stack = sums.get("(none)", [0, 0])[0]
            flat, total = flat_of_top(text)
            reader_test.compare(f"{path.name}: flat sum of {kind}", flat, written - without_stack)
            if total is not None:
                reader_test.compare(f"{path.name}: total of {kind}", total, written)

        # One line of values a sample, "count value count value...: locations".
        values = {kind: [0, 0] for kind in VALUE_NAMES}
        header = re.search(r"^Samples:\n(.*)$", raw, re.MULTILINE).group(1).split()
        names = [column.split("/")[0] for column in header]
        for line in re.findall(r"^\s+(-?\d+(?:\s+-?\d+)*):", raw, re.MULTILINE):
            for kind, name in VALUE_NAMES.items():
                if name in names and len(line.split()) == len(names):
                    index = names.index(name)
                    values[kind][0] += int(line.split()[index - 1])
                    values[kind][1] += int(line.split()[index])
        for kind in VALUE_NAMES:
            samples = [s for s in kept if s["kind"] == kind]
            reader_test.compare(f"{path.name}: raw sums of {kind}", values[kind],
                                [sum(s["count"] for s in samples),
                                 sum(s["value"] for s in samples)])
        for label in ("span_id", "trace_id", "local_root_span_id"):
            wanted = {s[label.replace("local_", "")] for s in kept}
            found = set(re.findall(rf"\b{label}:\[([0-9a-f]+)\]", raw))
            reader_test.compare(f"{path.name}: {label}", found, {w for w in wanted if int(w, 16)})
        comments = run(pprof, "-comments", file)
        for key, value in expected["resource"].items():
            if "\n" not in value and "=" not in key and f"{key}={value}" not in comments:
                reader_test.fail(f"{path.name}: no comment {key}={value} in {comments}")
    print("go tool pprof agrees")


main()
