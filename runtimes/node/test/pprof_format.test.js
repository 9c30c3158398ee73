'use strict';
// npm's own reader of pprof files, which Datadog's and Pyroscope's clients use, beside the one of these tests.
const assert = require('node:assert');
const fs = require('node:fs');
const { test } = require('node:test');
const zlib = require('node:zlib');
const { Profile } = require('pprof-format');
const { assertEndedWell, runText } = require('./child_process');

// The same as readSamples() gives.
function readByPprofFormat(file) {
  const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const byId = (list) => new Map(list.map((entry) => [Number(entry.id), entry]));
  const locations = byId(profile.location);
  const functions = byId(profile.function);
  return profile.sample.map((sample) => {
    const lines = sample.locationId.flatMap((id) => locations.get(Number(id)).line);
    const functionsOfLines = lines.map((line) => functions.get(Number(line.functionId)));
    return {
      functions: functionsOfLines.map(({ name }) => text(name)),
      files: functionsOfLines.map(({ filename }) => text(filename)),
      lines: lines.map(({ line }) => Number(line)),
      values: sample.value.map(Number),
      labels: Object.fromEntries(sample.label.map((label) =>
        [text(label.key), label.str ? text(label.str) : BigInt(label.num)])),
    };
  });
}

test('pprof-format of npm reads what this writes', async () => {
  const ended = await runText(`
    spanprof.start({ cpu: '1ms', wall: '1ms', alloc: '16k', file });
    const kept = [];
    spanprof.runWithContext({
      traceId: '0123456789abcdef0123456789abcdef', spanId: 'f0000000000000aa', rootSpanId: 'bb', endpoint: 'GET /cart',
      tags: { tenant: 'Ωmega', user: '7' },
    }, () => {
      burnFor(200);
      for (let i = 0; i < 20000; ++i) kept.push(new Array(16).fill(i));
    });
    spanprof.stop();
  `);
  assertEndedWell(ended);
  const samples = ended.samples();
  assert.ok(samples.some(({ functions, labels }) => functions.includes('burnFor') && labels.tenant === 'Ωmega'),
    `none of ${samples.length} samples has burnFor and its tags`);
  assert.deepStrictEqual(readByPprofFormat(ended.file), samples);
});
