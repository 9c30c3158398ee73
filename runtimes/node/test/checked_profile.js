'use strict';
// Compares what samples say of their context with what their stacks say.

const assert = require('assert');
const { readSamples } = require('./package/read_profile');

// Functions are named request_KIND, and the span of a kind is KIND + 1.
function checkSpans(files) {
  const result = { samples: 0, right: 0, wrong: 0, missing: 0, collections: 0, inCollection: 0, examples: [] };
  for (const { functions, values, labels } of files.flatMap(readSamples)) {
    result.samples += values[0];
    // V8 tells of no stack below its collector.
    if (functions[0] === '(garbage collector)') {
      result.collections += values[0];
      if (labels.span_id !== undefined) result.inCollection += values[0];
    }
    const name = functions.find((text) => text.startsWith('request_'));
    if (name === undefined) continue;
    const expected = (Number(name.slice('request_'.length)) + 1).toString(16).padStart(16, '0');
    if (labels.span_id === undefined) result.missing += values[0];
    else if (labels.span_id === expected && labels.local_root_span_id === expected) result.right += values[0];
    else result.wrong += values[0];
    if (labels.span_id !== expected && result.examples.length < 3) result.examples.push({ functions, labels });
  }
  return result;
}

// How many samples these stand for.
const total = (samples) => samples.reduce((sum, { values }) => sum + values[0], 0);
// Those with the function in their stack.
const of = (samples, name) => samples.filter(({ functions }) => functions.includes(name));

// A function that burned so long has most of that time in its samples, however many there are: each stands for the
// time since the one before it.
function assertBurned(samples, name, milliseconds) {
  const found = of(samples, name).reduce((sum, { values }) => sum + values[values.length - 1], 0) / 1e6;
  assert.ok(found >= milliseconds / 2, `${name} burned for ${milliseconds} ms, and the profile has ${found} ms`);
}

module.exports = { assertBurned, checkSpans, of, total };
