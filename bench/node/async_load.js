'use strict';
// async_load.js WAY MICROS: a program that does little but await, in 64 lanes; a request is a span with a child, six
// continuations and some ten microseconds. Prints CPU seconds of the load, and with the profile written, as JSON.

const { WAYS, spans } = require('./ways');

const LANES = 64;
const REQUESTS = Number(process.env.SPANPROF_BENCH_REQUESTS || 80000);
const way = WAYS[process.argv[2]];
const micros = Number(process.argv[3]);
const all = spans(1024);

function work(n) {
  let sum = 0;
  for (let i = 0; i < n; ++i) sum += Math.sqrt(i);
  return sum;
}

async function request(index) {
  return way.run(all[index & 1023], async () => {
    let sum = work(800);
    await undefined;
    sum += work(800);
    await null;
    sum += await way.run(all[(index + 1) & 1023], async () => {
      let inner = work(800);
      await undefined;
      inner += work(800);
      await null;
      return inner + work(800);
    });
    await undefined;
    return sum + work(800);
  });
}

async function lane(count, first) {
  for (let i = 0; i < count; ++i) await request(first + i);
}

async function load(requests) {
  const each = requests / LANES;
  await Promise.all(Array.from({ length: LANES }, (_, index) => lane(each, index * each)));
}

const seconds = ({ user, system }) => (user + system) / 1e6;

setImmediate(async () => {
  way.start(micros);
  await load(REQUESTS / 10); // What is done once is not what it costs to go on.
  const began = process.cpuUsage();
  await load(REQUESTS);
  const used = seconds(process.cpuUsage(began));
  await way.stop();
  console.log(JSON.stringify({ used, written: seconds(process.cpuUsage(began)) }));
});
