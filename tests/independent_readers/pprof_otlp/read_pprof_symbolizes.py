"""google/pprof finds the name of a function from our address, which has no name in our file."""

import os
import pathlib
import shutil
import subprocess

import reader_test


def main():
    pprof = shutil.which("pprof") or shutil.which("pprof", path=str(reader_test.CACHE / "go/bin"))
    if not pprof:
        reader_test.skip(f"no pprof in PATH or {reader_test.CACHE}/go/bin; "
                         "./dev test unit installs it")
    if not (shutil.which("addr2line") or shutil.which("llvm-symbolizer")):
        reader_test.skip("neither addr2line nor llvm-symbolizer in PATH")
    folder = reader_test.written_files()
    file = pathlib.Path(folder.name) / "own_address.pb.gz"
    done = subprocess.run([pprof, "-symbolize=force:local", "-top", "-sample_index=cpu", str(file)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PPROF_TMPDIR": folder.name})
    if "spanprof_test_landmark" not in done.stdout:
        reader_test.fail(f"not symbolised:\n{done.stdout}\n{done.stderr}")
    print("pprof found the function")


main()
