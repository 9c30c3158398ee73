'use strict';
// Programs in TypeScript, compiled by the compilers that people use, and what V8's own profiler says of them.

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const PACKAGE = path.resolve(__dirname, '..', '..');

function inFolder(work) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-node-test-'));
  try {
    return work(fs.realpathSync(folder));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

const SHOP = `// The functions of a shop, each of which burns time.
interface Item { price: number; count: number }

/* A comment
   of several lines moves everything. */
export function totalOfCart(items: Item[]): number {
  let total: number = 0;
  for (const item of items) total += Math.sqrt(item.price) * item.count;
  return total;
}

export const discountOfCart = (items: Item[]): number => {
  let discount = 0;
  for (const { price } of items) discount += Math.cbrt(price);
  return discount;
};

export class Basket {
  private readonly items: Item[] = [];
  fillBasket(count: number): Item[] {
    this.items.length = 0;
    for (let i = 0; i < count; ++i) this.items.push({ price: i, count: i % 7 });
    return this.items;
  }
}
`;

const MAIN = `import { Basket, discountOfCart, totalOfCart } from './shop/shop';

function runShop(): number {
  const basket = new Basket();
  let sum = 0;
  const end = Date.now() + 400;
  while (Date.now() < end) {
    const items = basket.fillBasket(3000);
    for (let i = 0; i < 2; ++i) sum += totalOfCart(items) + discountOfCart(items);
  }
  return sum;
}

if (runShop() === 0) console.log('nothing was done');
`;

// The line, from 1, where each function of the program begins, and its file.
const FUNCTIONS = new Map();
for (const [file, text] of [['src/shop/shop.ts', SHOP], ['src/main.ts', MAIN]]) {
  text.split('\n').forEach((line, index) => {
    const found = /function (\w+)\(|const (\w+) = \(.*=>|^  (\w+)\(.*\{$/.exec(line);
    if (found) FUNCTIONS.set(found[1] || found[2] || found[3], { file, line: index + 1 });
  });
}

function writeSources(folder) {
  fs.mkdirSync(path.join(folder, 'src', 'shop'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'src', 'main.ts'), MAIN);
  fs.writeFileSync(path.join(folder, 'src', 'shop', 'shop.ts'), SHOP);
}

function run(words, options = {}) {
  const answer = childProcess.spawnSync(words[0], words.slice(1), { encoding: 'utf8', timeout: 120000, ...options });
  if (answer.error) throw answer.error;
  if (answer.status !== 0) {
    throw new Error(`${words.join(' ')}: ${answer.signal || answer.status}\n${answer.stdout}${answer.stderr}`);
  }
  return answer.stdout;
}

function compileByTypescript(folder, options) {
  writeSources(folder);
  run([process.execPath, path.join(PACKAGE, 'node_modules', 'typescript', 'bin', 'tsc'), '--rootDir', 'src', '--outDir',
    'out', '--target', 'ES2020', '--module', 'commonjs', ...options, 'src/main.ts', '--lib',
    'ES2020,DOM'], { cwd: folder });
  return path.join(folder, 'out', 'main.js');
}

function compileByEsbuild(folder, options) {
  writeSources(folder);
  run([process.execPath, path.join(PACKAGE, 'node_modules', 'esbuild', 'bin', 'esbuild'), 'src/main.ts', '--bundle',
    '--platform=node', '--outfile=out/bundle.js', '--log-level=warning', ...options], { cwd: folder });
  return path.join(folder, 'out', 'bundle.js');
}

// The functions that V8's profiler saw in the program: {functionName, url, line, column}, from 1.
function profiledFunctions(program, options = []) {
  const folder = path.dirname(program);
  run([process.execPath, '--cpu-prof', '--cpu-prof-interval=200', '--cpu-prof-name=v8.cpuprofile', '--cpu-prof-dir', folder, ...options, program]);
  const profile = JSON.parse(fs.readFileSync(path.join(folder, 'v8.cpuprofile'), 'utf8'));
  return profile.nodes.map(({ callFrame }) => ({
    functionName: callFrame.functionName,
    url: callFrame.url,
    line: callFrame.lineNumber + 1,
    column: callFrame.columnNumber + 1,
  })).filter(({ url }) => url.startsWith('file:') || url.startsWith('/'));
}

module.exports = { FUNCTIONS, PACKAGE, compileByEsbuild, compileByTypescript, inFolder, profiledFunctions, run, writeSources };
