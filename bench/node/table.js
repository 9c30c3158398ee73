'use strict';
// Runs the rows in turn, each in a process of its own, and prints tables in Markdown:
// table.js ROUNDS [calls|async|http|memory...]

const childProcess = require('child_process');
const path = require('path');
const { WAYS, hasPeer } = require('./ways');

const rounds = Number(process.argv[2]);
const wanted = process.argv.length > 3 ? process.argv.slice(3) : ['calls', 'async', 'http', 'memory'];
const BASE = 'no profiler';
const RATES = [['99 Hz', 10101], ['1 kHz', 1000]];

if (!hasPeer()) console.log('@datadog/pprof is not installed (npm: @datadog/pprof): its rows are left out\n');
const all = Object.keys(WAYS).filter((name) => hasPeer() || !name.startsWith('pprof'));
const rowsOf = (table) => all.filter((name) => (WAYS[name].tables ?? [table]).includes(table));

function run(program, name, words = [], options = []) {
  const given = [...options, ...(WAYS[name].options ?? []), path.join(__dirname, program), name, ...words];
  const answer = childProcess.spawnSync(process.execPath, given, { encoding: 'utf8', timeout: 300000 });
  if (answer.status !== 0) {
    console.error(`${given.join(' ')} ended with ${answer.signal || answer.status}: ${answer.stderr}`);
    process.exit(1);
  }
  return JSON.parse(answer.stdout.trim().split('\n').pop());
}

// A Map from each row to its results, one for each round. Rows take turns, in another order each time.
function interleaved(rows, work) {
  const results = new Map(rows.map((row) => [row, []]));
  for (let round = 0; round < rounds; ++round) {
    for (const row of shuffled(rows)) results.get(row).push(work(row));
  }
  return results;
}

function shuffled(items) {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; --i) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}

const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => sorted(values)[Math.floor(values.length / 2)];

function spread(values, digits) {
  const inOrder = sorted(values);
  return `${median(inOrder).toFixed(digits)} (${inOrder[0].toFixed(digits)}-${inOrder[inOrder.length - 1].toFixed(digits)})`;
}

function print(title, columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const lines = [`${title}:`, '', line(['', ...columns]), line(['---', ...columns.map(() => '--:')]), ...rows.map(line)];
  console.log(`\n${lines.join('\n')}`);
}

function calls() {
  const rows = rowsOf('calls');
  const results = interleaved(rows, (name) => run('calls.js', name));
  const cell = (values) => (values.every((value) => value === undefined) ? '' : spread(values, 0));
  print('Nanoseconds of CPU time for a span, with the AsyncLocalStorage that a tracer has anyway', ['enter', 'run'],
    rows.map((name) => [name, cell(results.get(name).map(({ enter }) => enter)),
      cell(results.get(name).map(({ run: value }) => value))]));
}

// Relative to the run without a profiler in the same round.
function load(what, program) {
  const rows = rowsOf('loads');
  const runs = rows.flatMap((name) => (name === BASE ? [[name, RATES[0]]] : RATES.map((rate) => [name, rate])));
  const results = interleaved(runs, ([name, [, micros]]) => run(program, name, [String(micros)]));
  const resultsOf = (name, rate) => results.get(runs.find((one) => one[0] === name && one[1] === rate));
  const base = resultsOf(BASE, RATES[0]).map(({ used }) => used);
  const ratios = (name, rate, field) =>
    spread(resultsOf(name, rate).map((result, round) => result[field] / base[round]), 3);
  print(`CPU time of ${what}, relative to no profiler (there ${median(base).toFixed(2)} s)`,
    RATES.flatMap(([rate]) => [`${rate}, while it runs`, `${rate}, with the profile written`]),
    rows.filter((name) => name !== BASE).map((name) =>
      [name, ...RATES.flatMap((rate) => [ratios(name, rate, 'used'), ratios(name, rate, 'written')])]));
}

function memory() {
  const rows = rowsOf('memory');
  const results = interleaved(rows, (name) => run('memory.js', name, [], ['--expose-gc']));
  print('Bytes for each continuation that waits in a span of its own', ['heap', 'resident'],
    rows.map((name) => [name, spread(results.get(name).map(({ heap }) => heap), 0),
      spread(results.get(name).map(({ resident }) => resident), 0)]));
}

const began = Date.now();
console.log(`Node.js ${process.versions.node}, ${rounds} runs of each row, in turn; the median (lowest-highest)`);
if (wanted.includes('calls')) calls();
if (wanted.includes('async')) load('a load that awaits', 'async_load.js');
if (wanted.includes('http')) load('a web server', 'http_load.js');
if (wanted.includes('memory')) memory();
console.error(`${Math.round((Date.now() - began) / 1000)} seconds`);
