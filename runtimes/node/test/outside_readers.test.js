'use strict';
// Contexts as another process reads them: `spanprof context PID`, which knows nothing of Node.js but what the process
// publishes.

const assert = require('node:assert');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { newFolder } = require('./child_process');

const PROGRAM = path.join(__dirname, 'programs', 'outside_contexts.js');
const MAJOR = Number(process.versions.node.split('.')[0]);
const FRAME = MAJOR >= 24 ? [] : ['--experimental-async-context-frame'];
const NEEDS = {
  skip: MAJOR < 22 ? 'this Node.js has no async context frame' :
    !process.env.SPANPROF_COMMAND && 'SPANPROF_COMMAND does not name the spanprof command',
};
const hex = (number, digits) => number.toString(16).padStart(digits, '0');

class Target {
  constructor(t, words, options) {
    this.folder = newFolder();
    this.child = childProcess.spawn(process.execPath, [...options, PROGRAM, words[0], this.folder, ...words.slice(1)],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => this.child.kill('SIGKILL'));
    this.printed = '';
    this.child.stdout.setEncoding('utf8').on('data', (text) => {
      this.printed += text;
      this.waiting?.();
    });
    this.ended = new Promise((resolve) => this.child.on('close', (status, signal) => {
      this.waiting?.();
      resolve([status, signal]);
    }));
  }

  async until(line) {
    while (!this.printed.includes(`${line}\n`)) {
      assert.ok(this.child.exitCode === null && this.child.signalCode === null, `it ended before '${line}'`);
      await new Promise((resolve) => { this.waiting = resolve; });
    }
  }

  letGo(stage) {
    fs.writeFileSync(path.join(this.folder, stage), '');
  }

  read() {
    const ran = childProcess.spawnSync(process.env.SPANPROF_COMMAND, ['context', '--json', String(this.child.pid)],
      { encoding: 'utf8' });
    if (ran.status !== 0) return { error: ran.stderr, threads: [] };
    return JSON.parse(ran.stdout);
  }

  // During a collection of garbage nothing can be read.
  readSettled(wantsNone) {
    let reading = this.read();
    for (let i = 0; i < 20 && (reading.threads.length === 0) !== wantsNone; ++i) reading = this.read();
    return reading;
  }
}

// The number that all fields of the context follow from.
function numberOf(thread) {
  const number = Number(thread.attributes.number);
  assert.deepStrictEqual(
    [thread.trace_id, thread.span_id, thread.root_span_id, thread.source],
    [hex(number, 32), hex(number + 1, 16), hex(number + 2, 16), 'otep_4947'], JSON.stringify(thread));
  assert.strictEqual(thread.attributes['only' + (number % 3)] ?? '', 'x'.repeat(number % 40), JSON.stringify(thread));
  return number;
}

test('a reader outside sees the context of this very instant', NEEDS, async (t) => {
  const target = new Target(t, ['stages'], [...FRAME, '--expose-gc']);
  const expected = { run: 100, nested: 200, awaited: 100, unset: undefined, set: 300, left: undefined };
  await target.until('before');
  assert.match(target.read().error, /library for contexts of Node\.js loaded but publishes none/);
  target.letGo('before');
  for (const [stage, number] of Object.entries(expected)) {
    await target.until(stage);
    const { threads, records, counters, error } = target.readSettled(number === undefined);
    assert.strictEqual(error, undefined);
    assert.deepStrictEqual(records, ['otep_4947', 'otep_4719']);
    assert.deepStrictEqual(threads.map(numberOf), number === undefined ? [] : [number], stage);
    assert.deepStrictEqual([counters.malformed_frame, counters.not_stopped, counters.unknown_key], [0, 0, 0]);
    target.letGo(stage);
  }
  assert.deepStrictEqual(await target.ended, [0, null]);
});

test('and of each thread, however fast they change and objects move', NEEDS, async (t) => {
  const target = new Target(t, ['churn', '2'], [...FRAME, '--max-semi-space-size=1']);
  await target.until('churning');
  const seen = { main: 0, worker1: 0, worker2: 0 };
  const tids = {};
  const counts = { reads: 0, malformed: 0 };
  const enough = () => counts.reads >= 40 && Object.values(seen).every((count) => count > 2);
  while (!enough() && counts.reads < 2000) {
    const { threads, counters, error } = target.read();
    assert.ok(error === undefined || counts.reads === 0, error);
    ++counts.reads;
    counts.malformed += counters?.malformed_frame ?? 0;
    for (const thread of threads) {
      const number = numberOf(thread);
      const name = thread.attributes.thread;
      ++seen[name];
      assert.strictEqual(Math.floor(number / 1e9), name === 'main' ? 0 : Number(name.replace('worker', '')));
      assert.strictEqual(tids[name] ??= thread.tid, thread.tid, 'a context is of its own thread');
    }
  }
  target.letGo('end');
  assert.deepStrictEqual(await target.ended, [0, null]);
  t.diagnostic(JSON.stringify({ ...counts, ...seen }));
  assert.ok(enough(), JSON.stringify({ ...counts, ...seen }));
  assert.strictEqual(counts.malformed, 0);
});

test('what a reader sees is said by status()', NEEDS, async () => {
  const program = `
    const spanprof = require(${JSON.stringify(path.resolve(__dirname, '..'))});
    const { AsyncLocalStorage } = require('async_hooks');
    const said = [spanprof.status().outsideReaders];
    spanprof.attach(new AsyncLocalStorage(), () => undefined);
    said.push(spanprof.status().outsideReaders);
    spanprof.setContext({spanId: '1'});
    said.push(spanprof.status().outsideReaders);
    process.stdout.write(JSON.stringify(said));
  `;
  const run = (options) => JSON.parse(childProcess.execFileSync(process.execPath, [...options, '-e', program], { encoding: 'utf8' }));
  const [before, attached, set] = run(FRAME);
  assert.match(before, /^see nothing: setContext\(\) and runWithContext\(\) were not used$/);
  assert.match(attached, /^see nothing: .*of attach\(\) nothing/);
  assert.match(set, /^see the contexts of setContext\(\).*of attach\(\) nothing/);
  const [, , withoutFrame] = run(MAJOR >= 24 ? ['--no-async-context-frame'] : []);
  assert.match(withoutFrame, /^see nothing: the async context frame is switched off/);
});

test('the variable is exported as thread-local data, as readers look for it', NEEDS, () => {
  const addon = Object.keys(require.cache).find((file) => file.endsWith('.node')) ??
    (require('..'), Object.keys(require.cache).find((file) => file.endsWith('.node')));
  const listed = childProcess.spawnSync('readelf', ['--dyn-syms', '--wide', addon], { encoding: 'utf8' });
  assert.strictEqual(listed.status, 0, listed.stderr);
  const line = listed.stdout.split('\n').find((each) => each.includes(' otel_thread_ctx_nodejs_v1'));
  assert.match(line, /\s32 TLS\s+GLOBAL DEFAULT/);
});
