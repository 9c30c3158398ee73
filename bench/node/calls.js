'use strict';
// calls.js WAY: nanoseconds of CPU time of entering a span, and of running a function in one, as JSON.

const { WAYS, spans } = require('./ways');

const COUNT = 300000;
const way = WAYS[process.argv[2]];
const all = spans(64);

function nanosecondsEach(call) {
  const began = process.cpuUsage();
  for (let i = 0; i < COUNT; ++i) call(all[i & 63]);
  const { user, system } = process.cpuUsage(began);
  return ((user + system) * 1000) / COUNT;
}

function best(call) {
  return Math.min(...Array.from({ length: 5 }, () => nanosecondsEach(call)));
}

// In a continuation: outside of any, some ways do nothing.
setImmediate(async () => {
  way.start(1000000);
  const measured = {};
  const work = () => 1;
  await way.run?.(all[0], async () => {
    measured.run = best((span) => way.run(span, work));
  });
  await WAYS['no profiler'].run(all[0], async () => {
    if (way.enter) measured.enter = best(way.enter);
  });
  await way.stop();
  console.log(JSON.stringify(measured));
});
