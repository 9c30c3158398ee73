'use strict';
// What the check of V8's memory refuses. The storage is made to hold another store than the one that it was given, as it
// would seem to if this V8's maps were laid out in another way.

const assert = require('node:assert');
const test = require('node:test');
const { of, total } = require('./checked_profile');
const { assertEndedWell, runText } = require('./child_process');

const HAS_FRAME = Number(process.versions.node.split('.')[0]) >= 24;
const NEEDS = { skip: !HAS_FRAME && 'contexts come through the slot in this Node.js anyway' };

// The wrong store is seen by the run of that number, counted from 0.
const misleading = (number) => `
  const { AsyncLocalStorage } = require('async_hooks');
  const run = AsyncLocalStorage.prototype.run;
  let runs = 0;
  AsyncLocalStorage.prototype.run = function (store, ...rest) {
    return run.call(this, runs++ === ${number} ? { another: store } : store, ...rest);
  };
`;

test('frames that are not read as V8 reads them are not used: contexts come through the slot, and are right', NEEDS, async () => {
  const ended = await runText(`
    ${misleading(0)}
    (async () => {
      spanprof.start({wall: '1ms', file});
      await spanprof.runWithContext({spanId: '1'}, async () => {
        named('first')(150);
        await new Promise(setImmediate);
        named('later')(150);
      });
      named('outside')(150);
      await spanprof.stop();
      process.stdout.write(JSON.stringify(spanprof.status()));
    })();
  `);
  assertEndedWell(ended);
  const { way, reason } = JSON.parse(ended.stdout);
  assert.strictEqual(way, 'atomic-slot');
  assert.match(reason, /does not hold the store that was just set.*newer spanprof/);
  for (const [name, span] of [['first', '0000000000000001'], ['later', '0000000000000001'], ['outside', undefined]]) {
    const samples = of(ended.samples(), name);
    assert.ok(total(samples) > 0, name);
    assert.ok(samples.every(({ labels }) => labels.span_id === span), name);
  }
});

test('a storage whose store is not found is not attached, and the reason is thrown', NEEDS, async () => {
  const ended = await runText(`
    ${misleading(1)}
    const tracer = new AsyncLocalStorage();
    let message = 'nothing was thrown';
    try { spanprof.attach(tracer, () => undefined); } catch (error) { ({ message } = error); }
    const refused = spanprof.status().attached;
    spanprof.attach(tracer, () => undefined);
    process.stdout.write(JSON.stringify({message, refused, attached: spanprof.status().attached}));
  `);
  assertEndedWell(ended);
  const { message, refused, attached } = JSON.parse(ended.stdout);
  assert.match(message, /does not hold the store that was just set/);
  assert.deepStrictEqual([refused, attached], [false, true]);
});
