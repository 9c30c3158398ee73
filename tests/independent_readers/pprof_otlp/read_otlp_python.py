"""Decodes our OTLP with OpenTelemetry's own generated classes and compares all of it."""

import reader_test

reader_test.need_venv()

from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

KIND_OF_TYPE = {
    ("cpu", "nanoseconds"): "cpu",
    ("wall", "nanoseconds"): "wall",
    ("alloc_space", "bytes"): "allocation",
    ("delay", "nanoseconds"): "lock",
}


class Dictionary:
    def __init__(self, message):
        self.message = message
        self.text = message.string_table
        for table in ("mapping_table", "location_table", "function_table", "link_table",
                      "attribute_table", "stack_table"):
            entries = getattr(message, table)
            if entries[0] != type(entries[0])():
                reader_test.fail(f"entry 0 of {table} is not the zero value: {entries[0]}")
        if self.text[0] != "":
            reader_test.fail("entry 0 of string_table is not empty")

    def attributes(self, indices):
        found = {}
        for index in indices:
            attribute = self.message.attribute_table[index]
            key = self.text[attribute.key_strindex]
            if index == 0 or key in found:
                reader_test.fail(f"attribute {index} ({key}) is none, or there twice")
            found[key] = getattr(attribute.value, attribute.value.WhichOneof("value"))
        return found

    def frames(self, stack_index):
        frames = []
        for location_index in self.message.stack_table[stack_index].location_indices:
            location = self.message.location_table[location_index]
            mapping = self.message.mapping_table[location.mapping_index]
            lines = list(location.lines) or [None]
            for number, line in enumerate(lines):
                function = self.message.function_table[line.function_index if line else 0]
                frames.append({
                    "kind": self.attributes(location.attribute_indices)["profile.frame.type"],
                    "inlined": number + 1 < len(lines),
                    "address": location.address,
                    "line": line.line if line else 0,
                    "column": line.column if line else 0,
                    "function": self.text[function.name_strindex],
                    "system_name": self.text[function.system_name_strindex],
                    "file": self.text[function.filename_strindex],
                    "start_line": function.start_line,
                    "mapping": [mapping.memory_start, mapping.memory_limit, mapping.file_offset],
                    "path": self.text[mapping.filename_strindex],
                    "build_id": self.attributes(mapping.attribute_indices).get(
                        "process.executable.build_id.gnu", ""),
                })
        return frames


def read_sample(dictionary, kind, sample):
    attributes = dictionary.attributes(sample.attribute_indices)
    link = dictionary.message.link_table[sample.link_index]
    shared = {
        "kind": kind,
        "folded": attributes.pop("spanprof.folded", False),
        "state": attributes.pop("thread_state", ""),
        "count": attributes.pop("spanprof.count", 1),
        "tid": attributes.pop("thread.id", 0),
        "thread_name": attributes.pop("thread.name", ""),
        "trace_id": link.trace_id.hex() or "0" * 32,
        "span_id": link.span_id.hex() or "0" * 16,
        "root_span_id": attributes.pop("local_root_span_id", "0" * 16),
        "endpoint": attributes.pop("endpoint", ""),
        "frames": dictionary.frames(sample.stack_index),
    }
    # What is left are the tags, one of which has the name of an attribute of ours.
    shared["tags"] = {key.removeprefix("attribute."): value for key, value in attributes.items()}
    if len(sample.values) != len(sample.timestamps_unix_nano):
        reader_test.fail("as many values as times are needed")
    for value, time in zip(sample.values, sample.timestamps_unix_nano):
        yield {**shared, "value": value, "time": time}


def main():
    folder = reader_test.written_files()
    total = 0
    for path, expected in reader_test.profiles(folder):
        request = profiles_service_pb2.ExportProfilesServiceRequest()
        request.ParseFromString(path.with_suffix(".otlp").read_bytes())
        dictionary = Dictionary(request.dictionary)
        [resource_profiles] = request.resource_profiles
        resource = {a.key: a.value.string_value for a in resource_profiles.resource.attributes}
        reader_test.compare("resource", resource, expected["resource"])
        [scope_profiles] = resource_profiles.scope_profiles

        samples = []
        counters = {}
        names = {}
        for profile in scope_profiles.profiles:
            reader_test.compare("start", profile.time_unix_nano, expected["start"])
            reader_test.compare("duration", profile.duration_nano, expected["duration"])
            reader_test.compare("length of profile_id", len(profile.profile_id), 16)
            kind = KIND_OF_TYPE[dictionary.text[profile.sample_type.type_strindex],
                                dictionary.text[profile.sample_type.unit_strindex]]
            for key, value in dictionary.attributes(profile.attribute_indices).items():
                if key.startswith("spanprof.counter."):
                    counters[key.removeprefix("spanprof.counter.")] = value
                if key.startswith("spanprof.attribute."):
                    names[int(key.removeprefix("spanprof.attribute."))] = value
            for sample in profile.samples:
                samples.extend(read_sample(dictionary, kind, sample))
        reader_test.compare("counters", counters, expected["counters"])
        reader_test.compare("attribute names", [names[i] for i in sorted(names)],
                            expected["attribute_names"])
        reader_test.compare("samples", reader_test.summed(samples),
                            reader_test.summed(expected["samples"]))
        reader_test.compare("number of samples", len(samples), len(expected["samples"]))
        total += len(samples)
    print(f"{total} samples agree")


main()
