'use strict';
// node -r spanprof/auto app.js, and every way that a program ends.
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { BURN, linkPackage, runProgram } = require('./child_program');
const { compileByEsbuild } = require('./compiled_program');
const { readSamples } = require('./read_profile');

const RECORD = { environment: { SPANPROF: 'cpu=1ms,wall=1ms,file=profile.pb.gz' }, options: ['-r', 'spanprof/auto'] };

async function inPackageFolder(work) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-auto-')));
  try {
    linkPackage(folder);
    return await work(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function checkBurning(folder, file = 'profile.pb.gz') {
  const samples = readSamples(path.join(folder, file));
  const burning = samples.filter(({ functions }) => functions.includes('burnFor'));
  assert.ok(burning.length > 0, `none of ${samples.length} samples has burnFor`);
  return burning;
}

for (const [what, ending, expected] of [
  ['ends', '', { status: 0 }],
  ['calls process.exit', 'process.exit(3);', { status: 3 }],
  ['throws', 'throw new Error("intended");', { status: 1 }],
  ['rejects', 'Promise.reject(new Error("intended"));', { status: 1 }],
  ['gets SIGTERM', 'process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000);', { signal: 'SIGTERM' }],
  ['gets SIGINT', 'process.kill(process.pid, "SIGINT"); setInterval(() => {}, 1000);', { signal: 'SIGINT' }],
  ['handles SIGTERM', 'process.on("SIGTERM", () => process.exit(7)); process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000);',
    { status: 7 }],
]) {
  test(`a program that ${what} leaves its profile`, () => inPackageFolder(async (folder) => {
    const ended = await runProgram(folder, `${BURN} burnFor(200); ${ending}`, RECORD);
    if (expected.signal) assert.strictEqual(ended.signal, expected.signal, ended.stderr);
    else assert.strictEqual(ended.status, expected.status, ended.stderr);
    checkBurning(folder);
  }));
}

test('a module, with --import', () => inPackageFolder(async (folder) => {
  const ended = await runProgram(folder, `${BURN} burnFor(200); export {};`,
    { ...RECORD, name: 'app.mjs', options: ['--import', 'spanprof/auto'] });
  assert.strictEqual(ended.status, 0, ended.stderr);
  checkBurning(folder);
}));

test('a module imports the calls by name', () => inPackageFolder(async (folder) => {
  const ended = await runProgram(folder, `
    import { runWithContext, start, status, stop } from 'spanprof';
    import { followState } from 'spanprof/opentelemetry';
    ${BURN}
    start({ cpu: '1ms', file: 'profile.pb.gz' });
    runWithContext({ spanId: '00000000000000aa' }, burnFor, 200);
    console.log(JSON.stringify({ recording: status().recording, spans: followState().spans }));
    await stop();
  `, { name: 'app.mjs' });
  assert.deepStrictEqual(JSON.parse(ended.stdout), { recording: true, spans: 'waiting' }, ended.stderr);
  const spans = new Set(checkBurning(folder).map(({ labels }) => labels.span_id));
  assert.ok(spans.has('00000000000000aa'), [...spans].join(' '));
}));

test('without options it records into a file of its own', () => inPackageFolder(async (folder) => {
  const ended = await runProgram(folder, `${BURN} burnFor(300);`, { options: ['-r', 'spanprof/auto'], environment: { SPANPROF: '' } });
  assert.strictEqual(ended.status, 0, ended.stderr);
  const files = fs.readdirSync(folder).filter((name) => /^spanprof-\d+\.pb\.gz$/.test(name));
  assert.strictEqual(files.length, 1);
  checkBurning(folder, files[0]);
}));

test('options that are wrong are no reason for a program not to run', () => inPackageFolder(async (folder) => {
  const ended = await runProgram(folder, 'console.log("it runs");', { ...RECORD, environment: { SPANPROF: 'cpu=never' } });
  assert.strictEqual(ended.status, 0);
  assert.strictEqual(ended.stdout, 'it runs\n');
  assert.match(ended.stderr, /^spanprof: nothing is recorded: .*never/m);
}));

test('a worker is recorded too', () => inPackageFolder(async (folder) => {
  const ended = await runProgram(folder, `
    const { Worker, isMainThread } = require('worker_threads');
    ${BURN}
    function inWorker() { return burnFor(300); }
    if (isMainThread) new Worker(__filename); else inWorker();
  `, RECORD);
  assert.strictEqual(ended.status, 0, ended.stderr);
  const functions = readSamples(path.join(folder, 'profile.pb.gz')).flatMap((sample) => sample.functions);
  assert.ok(functions.includes('inWorker'), [...new Set(functions)].join(' '));
}));

test('functions of a bundle are where their sources have them', () => inPackageFolder(async (folder) => {
  compileByEsbuild(folder, ['--sourcemap', '--minify']);
  const ended = await runProgram(folder, 'require("./out/bundle.js");', RECORD);
  assert.strictEqual(ended.status, 0, ended.stderr);
  const seen = new Map();
  for (const { functions, files } of readSamples(path.join(folder, 'profile.pb.gz'))) {
    functions.forEach((name, index) => seen.set(name, files[index]));
  }
  for (const [name, file] of [['totalOfCart', 'src/shop/shop.ts'], ['runShop', 'src/main.ts']]) {
    assert.strictEqual(seen.get(name), path.join(folder, file), [...seen.keys()].join(' '));
  }
}));
