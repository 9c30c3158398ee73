"""Runs the hostile neighbour alone, under `spanprof record`, and recording itself.

usage: run_hostile_neighbour.py MODE STORAGE PROGRAM PLUGIN COMMAND [RUNS]

MODE is alone, record, record_timers or linked. A run passes if the program found all its own results
right, left no process behind, and if the profile that was made of it can be read and has samples.
SPANPROF_HOSTILE_SECONDS is the duration of all RUNS together (default 40), of which this is one. A run
that hangs is shown, thread by thread, before it is ended.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_SECONDS = 150
# Below the kernel's tick by perf events, above it by timers.
INTERVALS = {
    "record": ["--cpu", "1ms", "--wall", "2ms"],
    "record_timers": ["--cpu", "11ms", "--wall", "5ms"],
}


def processes_of_session(session):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def show_threads(pid):
    if shutil.which("gdb"):
        command = ["gdb", "-batch", "-p", str(pid), "-ex", "thread apply all bt 30"]
        try:
            print(subprocess.run(command, capture_output=True, text=True, timeout=120).stdout[-60000:])
            return
        except subprocess.TimeoutExpired:
            print("gdb did not come to an end")
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        for name in ("stat", "wchan", "syscall"):
            try:
                print(task.name, name, (task / name).read_text().strip())
            except OSError as error:
                print(task.name, name, error)


def run(command, seconds):
    """Returns the exit status, None for a hang. What the program prints goes through."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        status = process.wait(timeout=seconds + PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        print("HANGS. Its processes:", flush=True)
        for pid in processes_of_session(process.pid):
            print(f"---- process {pid}", flush=True)
            show_threads(pid)
        status = None
    deadline = time.monotonic() + 5
    while (left := processes_of_session(process.pid)) and status is not None:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    for pid in left:
        print(f"process {pid} was left behind", flush=True)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    return None if left else status


def check_profile(command, file):
    report = subprocess.run(
        [command, "report", str(file), "--json"], capture_output=True, text=True, check=False
    )
    if report.returncode != 0:
        print(f"{file} cannot be read:", report.stderr)
        return False
    print(f"{file.name}: {file.stat().st_size} bytes, {len(report.stdout)} bytes of report")
    return "hostile" in report.stdout or "spanprof_thread_start" in report.stdout


def main():
    mode, storage, program, plugin, command = sys.argv[1:6]
    runs = int(sys.argv[6]) if len(sys.argv) > 6 else 1
    seconds = float(os.environ.get("SPANPROF_HOSTILE_SECONDS", "40")) / runs
    own = [program, "--plugin", plugin, "--seconds", str(seconds), "--storage", storage]
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        profiles = []
        if mode in INTERVALS:
            profiles = [folder / "profile.pb.gz"]
            options = ["--options", f"ctxstorage={storage},attributes=neighbour"]
            own = [command, "record", "-o", str(profiles[0]), *INTERVALS[mode], *options, "--", *own]
        elif mode == "linked":
            profiles = [folder / "recorded.jfr", folder / "dumped.pb.gz"]
            own += ["--profile", str(folder)]
        status = run(own, seconds)
        if status is None:
            return 1
        print("exit status", status)
        readable = [check_profile(command, profile) for profile in profiles]
        return 0 if status == 0 and all(readable) else 1


if __name__ == "__main__":
    sys.exit(main())
