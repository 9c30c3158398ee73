'use strict';
// Other users of SIGPROF in the process, polite ones and others.

const assert = require('node:assert');
const test = require('node:test');
const { of, total } = require('./checked_profile');
const { assertEndedWell, runText } = require('./child_process');
const { compileSignalUser, signalUserProblem } = require('./signal_user');

const NEEDS = { skip: signalUserProblem() };

const runWithNeighbour = (text) => runText(`
  const neighbour = require(${JSON.stringify(compileSignalUser())});
  const counters = () => spanprof.status().counters;
  (async () => {
    ${text}
  })();
`);

test('another user of SIGPROF gets all his signals, and none of ours', NEEDS, async () => {
  const ended = await runWithNeighbour(`
    neighbour.startTimer();
    named('alone')(200);
    const outer = [neighbour.countOfTimer()];
    spanprof.start({wall: '1ms', file});
    const inner = [neighbour.countOfTimer()];
    spanprof.runWithContext({spanId: '1'}, named('together'), 400);
    inner.push(neighbour.countOfTimer());
    await spanprof.stop();
    outer.push(neighbour.countOfTimer());
    const passedOn = counters()['node.foreign_signals'];
    named('afterwards')(200);
    const afterwards = neighbour.countOfTimer() - outer[1];
    neighbour.stopTimer();
    process.stdout.write(JSON.stringify({outer, inner, passedOn, afterwards, ours: neighbour.countOfOthers()}));
  `);
  assertEndedWell(ended);
  const { outer, inner, passedOn, afterwards, ours } = JSON.parse(ended.stdout);
  assert.ok(outer[0] > 0 && inner[1] > inner[0] && afterwards > 0, ended.stdout);
  // What we passed on is what he got, as far as the two can be counted at the same moments.
  assert.ok(passedOn >= inner[1] - inner[0] && passedOn <= outer[1] - outer[0], ended.stdout);
  assert.strictEqual(ours, 0, ended.stdout);
  const samples = of(ended.samples(), 'together');
  assert.ok(total(samples) > 0);
  assert.ok(samples.every(({ labels }) => labels.span_id === '0000000000000001'));
});

test('one who stands before us and calls us changes nothing', NEEDS, async () => {
  const ended = await runWithNeighbour(`
    spanprof.start({wall: '1ms', file});
    neighbour.standBefore();
    spanprof.runWithContext({spanId: '1'}, named('passed_on'), 300);
    await spanprof.dump(file + '.dump.pb.gz');
    spanprof.runWithContext({spanId: '2'}, named('passed_on_again'), 300);
    await spanprof.stop();
    named('afterwards')(50);
    process.stdout.write(JSON.stringify({counters: counters(), seen: neighbour.countOfOthers()}));
  `);
  assertEndedWell(ended);
  const { counters, seen } = JSON.parse(ended.stdout);
  assert.ok(seen > 0);
  assert.strictEqual(counters['node.handler_displaced'], undefined, ended.stdout);
  for (const [name, span] of [['passed_on', '1'], ['passed_on_again', '2']]) {
    const samples = of(ended.samples(), name);
    assert.ok(total(samples) > 0, name);
    assert.ok(samples.every(({ labels }) => labels.span_id === span.padStart(16, '0')), name);
  }
});

test('one who takes the signal away is counted, and what was sampled before is there', NEEDS, async () => {
  const ended = await runWithNeighbour(`
    spanprof.start({wall: '1ms', file});
    spanprof.runWithContext({spanId: '1'}, named('burned_before'), 200);
    await spanprof.dump(file + '.1.pb.gz');
    neighbour.displace();
    named('taken_away')(100);
    // What was heard before the signal was taken is heard of here, and no more from then on.
    await spanprof.dump(file + '.2.pb.gz');
    named('taken_away')(100);
    await spanprof.stop();
    const displaced = counters()['node.handler_displaced'];
    // And the next recording has the signal again.
    spanprof.start({wall: '1ms', file: file + '.3.pb.gz'});
    spanprof.runWithContext({spanId: '2'}, named('again'), 200);
    await spanprof.stop();
    process.stdout.write(JSON.stringify({displaced, his: neighbour.countOfOthers()}));
  `);
  assertEndedWell(ended);
  const { displaced, his } = JSON.parse(ended.stdout);
  assert.ok(displaced > 0 && his > 0, ended.stdout);
  const samples = ended.samples();
  assert.ok(total(of(samples, 'burned_before')) > 0);
  assert.ok(of(samples, 'burned_before').every(({ labels }) => labels.span_id === '0000000000000001'));
  const again = of(ended.samplesOf(`${ended.file}.3.pb.gz`), 'again');
  assert.ok(total(again) > 0);
  assert.ok(again.every(({ labels }) => labels.span_id === '0000000000000002'));
});

test('signals that find no room are counted, and sampling goes on', NEEDS, async () => {
  const ended = await runWithNeighbour(`
    spanprof.start({wall: '1ms', file});
    spanprof.runWithContext({spanId: '1'}, named('burned_before'), 200);
    neighbour.flood(70000); // At 1 ms there is room for 60,000.
    await spanprof.dump(file + '.dump.pb.gz');
    const first = counters();
    spanprof.runWithContext({spanId: '2'}, named('burned_after'), 200);
    await spanprof.stop();
    process.stdout.write(JSON.stringify({first, last: counters()}));
  `);
  assertEndedWell(ended);
  const { first, last } = JSON.parse(ended.stdout);
  assert.ok(first['node.record_dropped_ring_full'] >= 9000 && first['node.record_dropped_ring_full'] < 12000, ended.stdout);
  assert.strictEqual(last['node.record_dropped_ring_full'], first['node.record_dropped_ring_full']);
  assert.ok(first['node.record_without_sample'] >= 55000, ended.stdout);
  for (const [name, span] of [['burned_before', '1'], ['burned_after', '2']]) {
    const samples = of(ended.samples(), name);
    assert.ok(total(samples) > 0, name);
    const others = samples.filter(({ labels }) => labels.span_id !== span.padStart(16, '0'));
    assert.deepStrictEqual(others, [], `${name}: ${ended.stdout}`);
  }
});
