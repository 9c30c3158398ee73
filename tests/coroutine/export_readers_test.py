#!/usr/bin/env python3
"""Other people's tools read what `spanprof coro export` writes, and all of them find the same.

    export_readers_test.py sqlite|postgres|perfetto COMMAND PLANTED_SCHEDULER WRITE_AWKWARD_RECORDING

Two recordings: of a real scheduler, and one with texts that formats stumble over. SQLite's and PostgreSQL's
tables are compared with the CSV export, row by row; Perfetto's trace is decoded by its own classes. Exit
code 77 (skipped), with the reason, where a reader is not installed.
"""

import collections
import csv
import glob
import io
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left in the tree
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "independent_readers", "perfetto"))
from perfetto_classes import perfetto_classes  # noqa: E402

SKIPPED = 77
LOST_WAKEUP = "Receiver(Scheduler&, Signal&)"
AWKWARD_NAMES = ["tab\there", "new\nline\r", "\\.", "\\N", "'; DROP TABLE events; --", '"quoted",',
                 "zerobyte", "not utf-8: \ufffd\ufffd", "größer 協程", ""]


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def require(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, **options)
    require(done.returncode == 0, command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


class Recordings:
    def __init__(self, folder, command, scheduler, write_awkward):
        self.command = command
        self.real = os.path.join(folder, "real.coro")
        self.awkward = os.path.join(folder, "awkward.coro")
        run(command, "coro", "record", "-o", self.real, "--", scheduler, "lost_wakeup")
        run(write_awkward, self.awkward)

    def export(self, recording, file_format, *options):
        return run(self.command, "coro", "export", "-f", file_format, *options, recording)

    def csv(self, recording):
        """(time, tid, kind) of each event: what every other export has to have too."""
        text = self.export(recording, "csv").decode(errors="replace")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        return [(int(row["ts"]), int(row["tid"]), row["kind"]) for row in rows]


def check_tables(query, recordings, recording, is_real):
    events = query("SELECT time_ns, tid, kind FROM events ORDER BY id")
    expected = recordings.csv(recording)
    require(events == expected, "events", len(events), "expected", len(expected))
    require(len(events) > (1000 if is_real else 10), "so few events", len(events))
    orphans = query("SELECT count(*) FROM events e LEFT JOIN coroutines c ON c.id = e.coroutine"
                    " WHERE c.id IS NULL")
    require(orphans == [(0,)], "events without a coroutine", orphans)
    resumes = query("SELECT sum(resumes) FROM coroutines")[0][0]
    require(resumes == sum(kind == "resume" for _, _, kind in events), "resumes", resumes)
    threads = query("SELECT count(*) FROM threads")[0][0]
    require(threads == len({tid for _, tid, _ in events}), "threads", threads)
    if is_real:
        # Every suspension is a wait; the lost wakeup is the one that has no end.
        waits = query("SELECT count(*) FROM waits")[0][0]
        require(waits == sum(kind == "suspend" for _, _, kind in events), "waits", waits)
        stuck = query("SELECT p.function FROM waits w JOIN places p ON p.target = w.target AND"
                      " p.id = w.place WHERE w.end_ns IS NULL")
        require(len(stuck) == 1 and LOST_WAKEUP in stuck[0][0], "stuck", stuck)
        lost = query("SELECT value FROM counters WHERE name = 'events_lost_ring_full'")
        require(lost == [(0,)], "lost", lost)
    else:
        names = [row[0] for row in query("SELECT name FROM coroutines ORDER BY id")]
        require(names == AWKWARD_NAMES, "names", names)
        require(query("SELECT name FROM targets") == [("back\\slash\n",)], "target")
        require(query('SELECT file, "function" FROM places') ==
                [("dir\\with\ttabs.cc", 'f("x\\n")')], "place")


def test_sqlite(folder, recordings):
    for recording, is_real in ((recordings.real, True), (recordings.awkward, False)):
        path = recording + ".db"
        recordings.export(recording, "sqlite", "-o", path)
        require(os.stat(path).st_mode & 0o777 == 0o600, "mode", oct(os.stat(path).st_mode))
        database = sqlite3.connect(path)
        require(database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "integrity")
        check_tables(lambda sql: database.execute(sql).fetchall(), recordings, recording, is_real)
        plan = database.execute("EXPLAIN QUERY PLAN SELECT * FROM events WHERE coroutine = 1"
                                " ORDER BY time_ns").fetchall()
        require("USING INDEX" in str(plan), "no index is used:", plan)
        again = subprocess.run([recordings.command, "coro", "export", "-f", "sqlite", "-o", path,
                                recording], capture_output=True)
        require(again.returncode == 1 and b"give another name" in again.stderr, "overwrites", again)


class Postgres:
    """A server of our own: in a folder of the test, reached by a socket there and in no other way."""

    def __init__(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not found or not shutil.which("psql"):
            skip("no PostgreSQL server (Debian: postgresql)")
        self.programs = os.path.dirname(found[-1])
        # The server refuses to run as root.
        self.user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.folder = tempfile.mkdtemp(prefix="pg-", dir=folder)
        self.data = os.path.join(self.folder, "data")
        if os.geteuid() == 0:
            account = pwd.getpwnam(self.user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            os.chmod(folder, 0o711)
        self.run_as_user("initdb", "-D", self.data, "-A", "trust", "-E", "UTF8", "--locale=C", "-N",
                         "-U", "tester")
        self.run_as_user("pg_ctl", "-D", self.data, "-w", "-s", "-l",
                         os.path.join(self.folder, "log"), "-o",
                         f"-k {self.folder} -c listen_addresses='' -c fsync=off", "start")

    def run_as_user(self, program, *arguments):
        options = {"cwd": self.folder}
        if os.geteuid() == 0:
            account = pwd.getpwnam(self.user)
            options.update(user=account.pw_uid, group=account.pw_gid, extra_groups=[])
        # The server keeps its output open: it has a log.
        done = subprocess.run([os.path.join(self.programs, program), *arguments],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        require(done.returncode == 0, program, done.stderr[-2000:])

    def psql(self, database, *arguments, **options):
        return run("psql", "-X", "-q", "-h", self.folder, "-U", "tester", "-d", database,
                   *arguments, **options)

    def query(self, database, sql):
        text = self.psql(database, "-c", f"COPY ({sql}) TO STDOUT WITH (FORMAT csv, NULL '\\N')")
        rows = csv.reader(io.StringIO(text.decode(), newline=""))
        number = lambda value: int(value) if value.lstrip("-").isdigit() else value
        return [tuple(number(value) for value in row) if row else ("",) for row in rows]

    def stop(self):
        self.run_as_user("pg_ctl", "-D", self.data, "-m", "immediate", "stop")


def test_postgres(folder, recordings):
    server = Postgres(folder)
    try:
        for name, recording, is_real in (("real", recordings.real, True),
                                         ("awkward", recordings.awkward, False)):
            server.psql("postgres", "-c", f"CREATE DATABASE {name}")
            script = recordings.export(recording, "postgres")
            server.psql(name, input=script)
            check_tables(lambda sql: server.query(name, sql), recordings, recording, is_real)
            indexes = server.query(name, "SELECT count(*) FROM pg_indexes WHERE tablename = 'events'")
            require(indexes[0][0] >= 3, "indexes", indexes)
            # A second time it fails as a whole, and leaves what is there as it was.
            again = subprocess.run(["psql", "-X", "-q", "-h", server.folder, "-U", "tester", "-d",
                                    name], input=script, capture_output=True)
            require(again.returncode != 0, "a second import succeeded")
            check_tables(lambda sql: server.query(name, sql), recordings, recording, is_real)
    finally:
        server.stop()


class Tracks:
    """What a viewer would show: slices by track, with their names, and the arrows between them."""

    def __init__(self, trace):
        self.names = {}
        self.described = {}
        self.open = collections.defaultdict(list)
        self.slices = collections.defaultdict(list)  # by track: (name, begin, end)
        self.flows = collections.defaultdict(list)  # by number: (time, type)
        last = 0
        for packet in trace.packet:
            for entry in packet.interned_data.event_names:
                require(entry.iid not in self.names, "interned twice", entry.iid)
                self.names[entry.iid] = entry.name
            if packet.HasField("track_descriptor"):
                self.described[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            require(packet.timestamp >= last, "time goes back", last, packet.timestamp)
            last = packet.timestamp
            self.take(packet.timestamp, packet.track_event)

    def take(self, time, event):
        require(event.track_uuid in self.described, "no such track", event.track_uuid)
        if event.type == event.TYPE_SLICE_BEGIN:
            self.open[event.track_uuid].append((self.names[event.name_iid], time))
        elif event.type == event.TYPE_SLICE_END:
            require(self.open[event.track_uuid], "nothing to end on", event.track_uuid)
            name, begin = self.open[event.track_uuid].pop()
            self.slices[event.track_uuid].append((name, begin, time))
        for flow in event.flow_ids:
            self.flows[flow].append((time, event.type))


def test_perfetto(_, recordings):
    protos = perfetto_classes()
    for recording, is_real in ((recordings.real, True), (recordings.awkward, False)):
        trace = protos.Trace()
        trace.ParseFromString(recordings.export(recording, "perfetto"))
        copy = protos.Trace()
        copy.CopyFrom(trace)
        copy.DiscardUnknownFields()
        require(copy.SerializeToString() == trace.SerializeToString(), "fields nobody knows")
        tracks = Tracks(trace)
        kinds = collections.Counter(kind for _, _, kind in recordings.csv(recording))
        threads = [u for u, track in tracks.described.items() if track.HasField("thread")]
        coroutines = [u for u, track in tracks.described.items() if track.name]
        require(len(coroutines) == kinds["birth"], "coroutine tracks", len(coroutines))
        runs = sum(len(tracks.slices[u]) + len(tracks.open[u]) for u in threads)
        require(runs == kinds["resume"], "runs on threads", runs, "resumes", kinds["resume"])
        for uuid in threads + coroutines:
            parent = tracks.described[uuid].parent_uuid
            require(tracks.described[parent].HasField("process"), "no process above", uuid)
        # An arrow leads from one to the next of those that have its number.
        arrows = sum(len(flow) for flow in tracks.flows.values())
        require(arrows == kinds["resume"] + kinds["ready"], "arrows", arrows)
        if not is_real:
            continue
        waiting = [tracks.open[u][-1][0] for u in coroutines if tracks.open[u]]
        require(len(waiting) == 1 and LOST_WAKEUP in waiting[0], "waits for ever", waiting)


def main():
    if sys.argv[1] == "perfetto":
        perfetto_classes()
    with tempfile.TemporaryDirectory() as folder:
        {"sqlite": test_sqlite, "postgres": test_postgres, "perfetto": test_perfetto}[sys.argv[1]](
            folder, Recordings(folder, *sys.argv[2:]))
    print("passed")


if __name__ == "__main__":
    main()
