'use strict';
// A process whose contexts another one reads.
//   outside_contexts.js stages FOLDER   does one thing after the other; each is told on standard output, and goes on
//                                       until FOLDER has a file of its name
//   outside_contexts.js churn FOLDER N  contexts change as fast as they can, in N workers too, until FOLDER has `end`
// A context's fields all follow from one number, so that a reader can tell if they belong together.

const fs = require('fs');
const path = require('path');
const { Worker, isMainThread, threadId, workerData } = require('worker_threads');
const spanprof = require('../..');

const hex = (number, digits) => number.toString(16).padStart(digits, '0');

function contextOf(number, thread) {
  return {
    traceId: hex(number, 32),
    spanId: hex(number + 1, 16),
    rootSpanId: hex(number + 2, 16),
    tags: { number: String(number), thread, ['only' + (number % 3)]: 'x'.repeat(number % 40) },
  };
}

// Should nobody come to say so.
const LAST_MOMENT = Date.now() + 120_000;
function hasCome(folder, file) {
  if (Date.now() > LAST_MOMENT) process.exit(3);
  return fs.existsSync(path.join(folder, file));
}

// Synchronous: a context that is read is the one of this very place.
function stay(folder, stage) {
  fs.writeSync(1, `${stage}\n`);
  while (!hasCome(folder, stage));
}

async function stages(folder) {
  stay(folder, 'before');
  await spanprof.runWithContext(contextOf(100, 'main'), async () => {
    stay(folder, 'run');
    spanprof.runWithContext(contextOf(200, 'main'), () => stay(folder, 'nested'));
    await new Promise((resolve) => setTimeout(resolve, 1));
    stay(folder, 'awaited');
    spanprof.setContext(undefined);
    stay(folder, 'unset');
    spanprof.setContext(contextOf(300, 'main'));
    if (global.gc) for (let i = 0; i < 5; ++i) global.gc();
    stay(folder, 'set');
  });
  stay(folder, 'left');
}

async function churn(folder, first, thread) {
  let number = first;
  const lane = async () => {
    while (!hasCome(folder, 'end')) {
      for (let i = 0; i < 50; ++i) {
        await spanprof.runWithContext(contextOf(number++, thread), async () => {
          const garbage = [];
          for (let j = 0; j < 100; ++j) garbage.push({ j, text: 'garbage' + j });
          await null;
          return garbage;
        });
      }
    }
  };
  if (isMainThread) fs.writeSync(1, 'churning\n');
  await Promise.all(Array.from({ length: 8 }, lane));
}

if (!isMainThread) {
  churn(workerData, threadId * 1e9, `worker${threadId}`);
} else if (process.argv[2] === 'stages') {
  stages(process.argv[3]);
} else {
  const workers = Number(process.argv[4] ?? 0);
  for (let i = 0; i < workers; ++i) new Worker(__filename, { workerData: process.argv[3] });
  churn(process.argv[3], 0, 'main');
}
