'use strict';
// A web server under load, recorded into file after file: its memory stays, and no context outlives its profile. For
// minutes with SPANPROF_NODE_SOAK_SECONDS=300, as ./dev soak has it.
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { linkPackage, runProgram } = require('./child_program');

const SECONDS = Number(process.env.SPANPROF_NODE_SOAK_SECONDS || 6);
const MEGABYTE = 1 << 20;

// Every 20th store is watched by a weak reference. Memory is measured when a third of the time has passed, and at the end.
const SERVER = `
  const { AsyncLocalStorage } = require('async_hooks');
  const http = require('http');
  const spanprof = require('spanprof');
  const way = process.env.WAY;
  const storage = new AsyncLocalStorage();
  spanprof.start({ cpu: '1ms', wall: '1ms', file: 'profile-%n.pb.gz', every: '1s' });
  if (way === 'attach') spanprof.attach(storage, (store) => ({ spanId: store.spanId, tags: { big: store.big.slice(0, 9) } }));
  const watched = [];
  let requests = 0;
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  async function answer(response) {
    const items = Array.from({ length: 50 }, (_, item) => ({ item, price: Math.sqrt(item) }));
    await pause();
    response.end(JSON.stringify(items));
  }
  const server = http.createServer((request, response) => {
    const store = { spanId: (++requests).toString(16).padStart(16, '0'), big: 'x'.repeat(2000) + requests };
    if (requests % 20 === 0) watched.push(new WeakRef(store));
    const { spanId } = store;
    storage.run(store, () => (way === 'attach' ? answer(response) : spanprof.runWithContext({ spanId }, answer, response)));
  });
  function memory() {
    for (let i = 0; i < 3; ++i) gc();
    const { heapUsed, rss } = process.memoryUsage();
    return { heapUsed, rss };
  }
  server.listen(0, async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    const get = () => new Promise((resolve, reject) =>
      http.get({ port: server.address().port, agent }, (response) => response.resume().on('end', resolve)).on('error', reject));
    const began = Date.now();
    let first;
    const lane = async () => {
      while (Date.now() - began < ${SECONDS} * 1000) {
        await get();
        if (first === undefined && Date.now() - began > ${SECONDS} * 1000 / 3) first = memory();
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    agent.destroy();
    server.close();
    const last = memory();
    await spanprof.stop();
    await new Promise((resolve) => setTimeout(resolve, 20));
    for (let i = 0; i < 3; ++i) { gc(); await pause(); }
    const alive = watched.filter((reference) => reference.deref() !== undefined).length;
    const { liveContexts, counters } = spanprof.status();
    console.log(JSON.stringify({ requests, first, last, watched: watched.length, alive, liveContexts, counters }));
  });
`;

for (const way of ['attach', 'runWithContext']) {
  test(`the memory of a web server stays, with ${way}`, async (context) => {
    const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-http-')));
    try {
      linkPackage(folder);
      const ended = await runProgram(folder, SERVER,
        { options: ['--expose-gc'], environment: { WAY: way }, seconds: SECONDS + 60 });
      assert.strictEqual(ended.status, 0, ended.stderr);
      const told = JSON.parse(ended.stdout);
      context.diagnostic(JSON.stringify(told));
      assert.ok(fs.readdirSync(folder).filter((name) => name.startsWith('profile-')).length > 1);
      assert.ok(told.watched > 20, String(told.watched));
      assert.strictEqual(told.alive, 0, `${told.alive} of ${told.watched} stores are alive`);
      assert.ok(told.liveContexts < 100, `${told.liveContexts} contexts are alive`);
      assert.ok(told.last.heapUsed - told.first.heapUsed < 8 * MEGABYTE, JSON.stringify(told));
      assert.ok(told.last.rss - told.first.rss < 64 * MEGABYTE, JSON.stringify(told));
    } finally {
      fs.rmSync(folder, { recursive: true, force: true });
    }
  });
}
