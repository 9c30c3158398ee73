'use strict';
// Runs the rows in turn, each in a process of its own, and prints tables: table.js ROUNDS [calls|async|http|memory...]

const childProcess = require('child_process');
const path = require('path');
const { WAYS, hasPeer } = require('./ways');

const rounds = Number(process.argv[2]);
const wanted = process.argv.length > 3 ? process.argv.slice(3) : ['calls', 'async', 'http', 'memory'];
const BASE = 'no profiler';
const RATES = [['99 Hz', 10101], ['1 kHz', 1000]];

if (!hasPeer()) console.log('@datadog/pprof is not installed (npm: @datadog/pprof): its rows are left out');
const names = Object.keys(WAYS).filter((name) => hasPeer() || !name.startsWith('pprof'));

function run(program, words, options = []) {
  const answer = childProcess.spawnSync(process.execPath, [...options, path.join(__dirname, program), ...words],
    { encoding: 'utf8', timeout: 300000 });
  if (answer.status !== 0) {
    console.error(`${program} ${words.join(' ')} ended with ${answer.signal || answer.status}: ${answer.stderr}`);
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
  const all = sorted(values);
  return `${median(all).toFixed(digits)} (${all[0].toFixed(digits)}-${all[all.length - 1].toFixed(digits)})`;
}

function print(title, columns, rows) {
  console.log(`\n${title}`);
  console.log(`${''.padEnd(28)}${columns.map((column) => column.padStart(28)).join('')}`);
  for (const [name, ...cells] of rows) {
    console.log(`${name.padEnd(28)}${cells.map((cell) => cell.padStart(28)).join('')}`);
  }
}

function calls() {
  const results = interleaved(names, (name) => run('calls.js', [name]));
  const cell = (values) => (values.every((value) => value === undefined) ? '' : spread(values, 0));
  print('Nanoseconds of CPU time for a span, with the AsyncLocalStorage that a tracer has anyway',
    ['enter', 'run'],
    names.map((name) => [name, cell(results.get(name).map(({ enter }) => enter)),
      cell(results.get(name).map(({ run: value }) => value))]));
}

// Relative to the run without a profiler in the same round.
function load(what, program) {
  const running = names.filter((name) => WAYS[name].run);
  for (const [rate, micros] of RATES) {
    const results = interleaved(running, (name) => run(program, [name, String(micros)]));
    const base = results.get(BASE).map(({ used }) => used);
    const ratios = (name, field) => results.get(name).map((result, round) => result[field] / base[round]);
    print(`CPU time of ${what} at ${rate}, relative to no profiler (there ${median(base).toFixed(2)} s)`,
      ['while it runs', 'with the profile written'],
      running.map((name) => [name, spread(ratios(name, 'used'), 3), spread(ratios(name, 'written'), 3)]));
  }
}

function memory() {
  const running = names.filter((name) => WAYS[name].run);
  const results = interleaved(running, (name) => run('memory.js', [name], ['--expose-gc']));
  print('Bytes for each continuation that waits in a span of its own', ['heap', 'resident'],
    running.map((name) => [name, spread(results.get(name).map(({ heap }) => heap), 0),
      spread(results.get(name).map(({ resident }) => resident), 0)]));
}

console.log(`Node.js ${process.versions.node}, ${rounds} runs of each row, in turn; the median (lowest-highest)`);
if (wanted.includes('calls')) calls();
if (wanted.includes('async')) load('a load that awaits', 'async_load.js');
if (wanted.includes('http')) load('a web server', 'http_load.js');
if (wanted.includes('memory')) memory();
