#!/usr/bin/env python3
"""Decodes a trace of ours with Perfetto's own protobuf classes and compares it with the model.

    decoder_test.py WRITE_PERFETTO_FILE

Exit code 77 (skipped) if the classes are not there.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left in the tree
from perfetto_classes import perfetto_classes  # noqa: E402

MADE_UP_TID = 1 << 30
protos = perfetto_classes()


def require(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def no_unknown_fields(message):
    """Round trip without what the decoder does not know: nothing may be lost."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return copy.SerializeToString() == message.SerializeToString()


class Sequence:
    def __init__(self):
        self.tables = collections.defaultdict(dict)
        self.timebase = None

    def intern(self, data):
        for field, entries in data.ListFields():
            for entry in entries:
                self.tables[field.name][entry.iid] = entry

    def frames_of(self, callstack):
        if not callstack:
            return []
        names = []
        for iid in self.tables["callstacks"][callstack].frame_ids:
            frame = self.tables["frames"][iid]
            mapping = self.tables["mappings"][frame.mapping_id]
            for path in mapping.path_string_ids:
                require(path in self.tables["mapping_paths"], "path", path)
            require(mapping.build_id in self.tables["build_ids"], "build id", mapping.build_id)
            names.append(self.tables["function_names"][frame.function_name_id].str.decode())
        return names


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        trace = protos.Trace()
        with open(os.path.join(folder, "trace.pftrace"), "rb") as file:
            trace.ParseFromString(file.read())
        with open(os.path.join(folder, "trace.json"), encoding="utf-8") as file:
            expected = json.load(file)
    require(no_unknown_fields(trace), "the trace has fields that Perfetto does not know")

    sequences = collections.defaultdict(Sequence)
    found = collections.Counter()
    last_count = collections.Counter()
    tracks = {}
    depth = collections.Counter()
    last_time = collections.Counter()
    slices = 0
    snapshot = 0
    for packet in trace.packet:
        sequence = sequences[packet.trusted_packet_sequence_id]
        if packet.sequence_flags & protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            sequence.tables.clear()
        sequence.intern(packet.interned_data)
        if packet.HasField("trace_packet_defaults"):
            sequence.timebase = packet.trace_packet_defaults.perf_sample_defaults.timebase
        if packet.HasField("clock_snapshot"):
            snapshot += 1
            require(len({clock.timestamp for clock in packet.clock_snapshot.clocks}) == 1, packet)
        if packet.HasField("perf_sample"):
            sample = packet.perf_sample
            require(sample.pid == 4711, sample)
            kind = sequence.timebase.name.split()[0]
            weight = sample.timebase_count - last_count[kind]
            last_count[kind] = sample.timebase_count
            tid = 0 if sample.tid >= MADE_UP_TID else sample.tid
            frames = sequence.frames_of(sample.callstack_iid)
            found[json.dumps([kind, packet.timestamp, tid, frames, weight])] += 1
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            tracks[descriptor.uuid] = descriptor
            require(descriptor.HasField("process") or descriptor.parent_uuid in tracks, descriptor)
        if packet.HasField("track_event"):
            event = packet.track_event
            require(tracks[event.track_uuid].HasField("thread"), event)
            require(packet.timestamp >= last_time[event.track_uuid], "slices go back in time")
            last_time[event.track_uuid] = packet.timestamp
            begins = event.type == protos.TrackEvent.TYPE_SLICE_BEGIN
            depth[event.track_uuid] += 1 if begins else -1
            require(depth[event.track_uuid] in (0, 1), "slices of a thread overlap")
            if begins:
                slices += 1
                require(sequence.tables["event_names"][event.name_iid].name, event)
                keys = [sequence.tables["debug_annotation_names"][a.name_iid].name
                        for a in event.debug_annotations]
                require("span_id" in keys and "local_root_span_id" in keys, keys)
    wanted = collections.Counter(json.dumps(sample) for sample in expected)
    difference = (wanted - found) + (found - wanted)
    require(not difference, len(difference), "samples differ:", list(difference)[:4])
    require(snapshot == 1 and slices > 0 and not any(depth.values()), snapshot, slices, depth)
    process = tracks[1].process
    require(process.process_name == "shop" and process.pid == 4711, process)
    require("service.name=shop" in process.process_labels, process)
    print(len(expected), "samples,", slices, "slices,", len(tracks), "tracks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
