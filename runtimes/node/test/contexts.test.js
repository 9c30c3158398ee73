'use strict';
// Every sample has the context of the continuation that it is of: 50,000 samples in each version of Node.js, and more
// under each thing that could confuse it.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { checkSpans } = require('./checked_profile');
const { newFolder, runNode } = require('./child_process');
const { compileSignalUser, signalUserProblem } = require('./signal_user');

const REQUESTS = path.join(__dirname, 'programs', 'requests.js');
// More of them in a soak, or by hand: SPANPROF_NODE_SAMPLES=1000000.
const SAMPLES = Number(process.env.SPANPROF_NODE_SAMPLES ?? (process.env.SPANPROF_SOAK ? 200000 : 50000));

async function sampleRequests(t, way, samples, { options = [], ...settings } = {}) {
  const folder = newFolder();
  const words = [REQUESTS, way, String(samples), path.join(folder, 'profile.pb.gz'), JSON.stringify(settings)];
  const ended = await runNode(words, { options, seconds: 120 + samples / 100 });
  assert.deepStrictEqual([ended.status, ended.signal, ended.stderr], [0, null, '']);
  const status = JSON.parse(ended.stdout);
  const files = fs.readdirSync(folder);
  const found = checkSpans(files.map((name) => path.join(folder, name)));
  t.diagnostic(JSON.stringify({ files: files.length, ...found, examples: undefined, ...status }));
  assert.strictEqual(found.wrong, 0, JSON.stringify(found.examples));
  assert.strictEqual(found.missing, 0, JSON.stringify(found.examples));
  assert.ok(found.samples >= samples * 0.9, `${found.samples} samples are in the file`);
  assert.ok(found.right > found.samples / 20, 'requests were sampled');
  // V8 gives no sample in the first instructions of a function, nor for a signal right behind another, of which there
  // are more where threads wait for a processor.
  const unmatched = status.counters['node.record_without_sample'] ?? 0;
  assert.ok(unmatched < found.samples * (settings.threads ? 0.1 : 0.03), `${unmatched} signals brought no sample`);
  assert.strictEqual(status.counters['node.record_dropped_ring_full'] ?? 0, 0);
  return { found, status };
}

const HAS_FRAME = Number(process.versions.node.split('.')[0]) >= 24;
const CAN_HAVE_FRAME = Number(process.versions.node.split('.')[0]) >= 22;

for (const [way, share] of [['attach', 0.5], ['run', 0.25], ['set', 0.25]]) {
  test(`samples of concurrent requests have their contexts: ${way}`, async (t) => {
    const { status } = await sampleRequests(t, way, SAMPLES * share);
    assert.strictEqual(status.way, HAS_FRAME ? 'async-context-frame' : 'atomic-slot');
  });
}

test('and where the garbage collector moves everything all the time', async (t) => {
  const options = ['--max-semi-space-size=1', '--stress-compaction', '--expose-gc'];
  const { found } = await sampleRequests(t, 'attach', SAMPLES * 0.05, { options });
  assert.ok(found.inCollection > found.collections / 2 && found.collections > found.samples / 20,
    'collections were sampled, most of which began in requests');
});

test('and with four workers beside the main thread, that end and are started again', async (t) => {
  await sampleRequests(t, 'attach', SAMPLES * 0.1, { threads: 4 });
});

test('and with recordings that are started and stopped in a loop', async (t) => {
  const { status } = await sampleRequests(t, 'run', SAMPLES * 0.05, { restarts: true });
  assert.strictEqual(status.counters['node.samples_too_late'] ?? 0, 0);
});

test('and with another user of SIGPROF', { skip: signalUserProblem() }, async (t) => {
  const neighbour = compileSignalUser();
  const { status } = await sampleRequests(t, 'attach', SAMPLES * 0.05, { neighbour });
  assert.ok(status.counters['node.foreign_signals'] > 0);
});

test('and where the frame is switched on or off by an option', { skip: CAN_HAVE_FRAME ? false : 'this Node.js has no such frame' }, async (t) => {
  const option = HAS_FRAME ? '--no-async-context-frame' : '--experimental-async-context-frame';
  const { status } = await sampleRequests(t, 'attach', SAMPLES * 0.05, { options: [option] });
  assert.strictEqual(status.way, HAS_FRAME ? 'atomic-slot' : 'async-context-frame');
});
