'use strict';
// Every sample has the context of the continuation that it is of: 50,000 samples in each version of Node.js.

const assert = require('node:assert');
const path = require('node:path');
const test = require('node:test');
const { checkSpans } = require('./checked_profile');
const { newFolder, runNode } = require('./child_process');

const REQUESTS = path.join(__dirname, 'programs', 'requests.js');
// More of them by hand: SPANPROF_NODE_SAMPLES=1000000.
const SAMPLES = Number(process.env.SPANPROF_NODE_SAMPLES ?? 50000);

async function sampleRequests(t, way, samples, { options = [], threads = 0 } = {}) {
  const file = path.join(newFolder(), 'profile.pb.gz');
  const ended = await runNode([REQUESTS, way, String(samples), file, String(threads)], { options });
  assert.deepStrictEqual([ended.status, ended.signal, ended.stderr], [0, null, '']);
  const status = JSON.parse(ended.stdout);
  const found = checkSpans(file);
  t.diagnostic(JSON.stringify({ ...found, examples: undefined, way: status.way, counters: status.counters }));
  assert.strictEqual(found.wrong, 0, JSON.stringify(found.examples));
  assert.ok(found.samples >= samples * 0.9, `${found.samples} samples are in the file`);
  assert.ok(found.right > found.samples / 20, 'requests were sampled');
  return { found, status };
}

const HAS_FRAME = Number(process.versions.node.split('.')[0]) >= 24;
const CAN_HAVE_FRAME = Number(process.versions.node.split('.')[0]) >= 22;

for (const [way, share] of [['attach', 0.4], ['run', 0.2], ['set', 0.2]]) {
  test(`samples of concurrent requests have their contexts: ${way}`, async (t) => {
    const { found, status } = await sampleRequests(t, way, SAMPLES * share);
    assert.strictEqual(found.missing, 0, JSON.stringify(found.examples));
    assert.strictEqual(status.way, HAS_FRAME ? 'async-context-frame' : 'atomic-slot');
  });
}

test('and where the garbage collector moves everything all the time', async (t) => {
  const options = ['--max-semi-space-size=1', '--stress-compaction', '--expose-gc'];
  const { found } = await sampleRequests(t, 'attach', SAMPLES * 0.05, { options });
  assert.strictEqual(found.missing, 0, JSON.stringify(found.examples));
  assert.ok(found.inCollection > 0, 'collections were sampled that began in requests');
});

test('and in four workers beside the main thread', async (t) => {
  const { found } = await sampleRequests(t, 'attach', SAMPLES * 0.1, { threads: 4 });
  assert.strictEqual(found.missing, 0, JSON.stringify(found.examples));
});

test('and where the frame is switched on or off by an option', { skip: CAN_HAVE_FRAME ? false : 'this Node.js has no such frame' }, async (t) => {
  const option = HAS_FRAME ? '--no-async-context-frame' : '--experimental-async-context-frame';
  const { found, status } = await sampleRequests(t, 'attach', SAMPLES * 0.05, { options: [option] });
  assert.strictEqual(found.missing, 0, JSON.stringify(found.examples));
  assert.strictEqual(status.way, HAS_FRAME ? 'atomic-slot' : 'async-context-frame');
});
