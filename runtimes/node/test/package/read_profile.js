'use strict';
// Reads a pprof file, by nothing that spanprof has: a decoder of protobuf's wire format, and the fields of
// profile.proto that the tests look at. (pprof_format.test.js has npm's, which takes field numbers above 15 for
// something else without a word.)

const fs = require('fs');
const zlib = require('zlib');

// A Map from field numbers to lists of values: BigInts, or bytes.
function fieldsOf(bytes) {
  const fields = new Map();
  let at = 0;
  const number = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('a number has no end');
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = number();
    let value;
    if ((tag & 7n) === 0n) {
      value = number();
    } else if ((tag & 7n) === 2n) {
      const length = Number(number());
      if (at + length > bytes.length) throw new Error(`${length} bytes are too many`);
      value = bytes.subarray(at, at += length);
    } else {
      throw new Error(`wire type ${tag & 7n} is not expected`);
    }
    const field = Number(tag >> 3n);
    if (!fields.has(field)) fields.set(field, []);
    fields.get(field).push(value);
  }
  return fields;
}

// A repeated number is packed into one field, or stands in several.
function numbersOf(values = []) {
  const all = [];
  for (const value of values) {
    if (typeof value === 'bigint') {
      all.push(Number(value));
      continue;
    }
    for (let at = 0; at < value.length; ) {
      let number = 0n;
      for (let shift = 0n; ; shift += 7n) {
        const byte = value[at++];
        number |= BigInt(byte & 127) << shift;
        if (byte < 128) break;
      }
      all.push(Number(number));
    }
  }
  return all;
}

// Returns [{functions, files, lines, values, labels}], the innermost frame first. Numbers of labels are BigInts.
function readSamples(file) {
  const profile = fieldsOf(zlib.gunzipSync(fs.readFileSync(file)));
  const strings = profile.get(6).map((bytes) => bytes.toString('utf8'));
  const text = (values) => strings[Number(values?.[0] ?? 0)];
  const byId = (field, make) => new Map((profile.get(field) ?? []).map(fieldsOf)
    .map((fields) => [Number(fields.get(1)[0]), make(fields)]));
  const functions = byId(5, (fields) => ({ name: text(fields.get(2)), file: text(fields.get(4)) }));
  const locations = byId(4, (fields) => (fields.get(4) ?? []).map(fieldsOf).map((line) =>
    ({ ...functions.get(Number(line.get(1)[0])), line: Number(line.get(2)?.[0] ?? 0) })));
  return (profile.get(2) ?? []).map(fieldsOf).map((sample) => {
    const frames = numbersOf(sample.get(1)).flatMap((id) => locations.get(id));
    return {
      functions: frames.map(({ name }) => name),
      files: frames.map((frame) => frame.file),
      lines: frames.map(({ line }) => line),
      values: numbersOf(sample.get(2)),
      labels: Object.fromEntries((sample.get(3) ?? []).map(fieldsOf).map((label) =>
        [text(label.get(1)), label.has(2) ? text(label.get(2)) : (label.get(3)?.[0] ?? 0n)])),
    };
  });
}

module.exports = { readSamples };
