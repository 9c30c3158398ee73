'use strict';
// memory.js WAY: bytes of the heap, and resident, for each of many continuations that wait in a span of their own, as
// JSON. Needs --expose-gc.

const { WAYS, spans } = require('./ways');

const COUNT = 100000;
const way = WAYS[process.argv[2]];

function measure() {
  for (let i = 0; i < 4; ++i) global.gc();
  const { heapUsed, rss } = process.memoryUsage();
  return { heapUsed, rss };
}

const waiting = [];

async function wait(resolvers) {
  await new Promise((resolve) => resolvers.push(resolve));
  return resolvers.length;
}

setImmediate(async () => {
  way.start(1000000);
  const all = spans(COUNT);
  // Everything is compiled, and the arrays have their sizes.
  for (let i = 0; i < 1000; ++i) way.run(all[i], () => wait(waiting));
  waiting.forEach((resolve) => resolve());
  waiting.length = 0;
  await undefined;
  const before = measure();
  for (let i = 0; i < COUNT; ++i) way.run(all[i], () => wait(waiting));
  const after = measure();
  console.log(JSON.stringify({
    heap: (after.heapUsed - before.heapUsed) / COUNT,
    resident: (after.rss - before.rss) / COUNT,
    waiting: waiting.length,
  }));
  waiting.forEach((resolve) => resolve());
  await way.stop();
});
