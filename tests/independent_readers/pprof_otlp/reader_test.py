"""What the tests of this folder share: the files to read, the decoders, and how to compare."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "spanprof"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def fail(message):
    print(f"FAILED: {message}")
    sys.exit(1)


def written_files():
    """Runs write_profile_files (the argument) and gives the folder it filled."""
    folder = tempfile.TemporaryDirectory(prefix="spanprof-readers-")
    subprocess.run([sys.argv[1], folder.name], check=True)
    return folder


def profiles(folder):
    """Each (path without ending, what the model says)."""
    paths = sorted(pathlib.Path(folder.name).glob("*.json"))
    if not paths:
        fail("nothing was written")
    for path in paths:
        yield path.with_suffix(""), json.loads(path.read_text())


def find_go():
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        skip("no go in PATH or /usr/local/go/bin")
    return go


def need_venv():
    """Goes on in the Python of the decoders' venv, if this one does not have protobuf."""
    try:
        import google.protobuf  # noqa: F401
        from opentelemetry.proto.profiles.v1development import profiles_pb2  # noqa: F401
    except ImportError:
        python = CACHE / "decoders" / "bin" / "python"
        if os.environ.get("SPANPROF_IN_VENV") or not python.exists():
            skip(f"no opentelemetry-proto here, nor in {python.parent.parent}")
        os.environ["SPANPROF_IN_VENV"] = "1"
        os.execv(python, [str(python), *sys.argv])


def compare(name, actual, expected):
    if actual == expected:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(set(actual) | set(expected), key=str):
            if actual.get(key) != expected.get(key):
                fail(f"{name}: {key!r}: read {actual.get(key)!r}, written {expected.get(key)!r}")
    fail(f"{name}: read {actual!r}, written {expected!r}")


def summed(samples):
    """Samples that are equal but for count and value, added up: (description) -> [count, value]."""
    sums = {}
    for sample in samples:
        rest = {k: v for k, v in sample.items() if k not in ("count", "value")}
        entry = sums.setdefault(json.dumps(rest, sort_keys=True), [0, 0])
        entry[0] += sample["count"]
        entry[1] += sample["value"]
    return sums
