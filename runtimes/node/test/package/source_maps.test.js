'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const { SourceMap } = require('node:module');
const path = require('node:path');
const { test } = require('node:test');
const { SourceMaps } = require('../../dist/source_maps');
const {
  FUNCTIONS, compileByEsbuild, compileByTypescript, inFolder, profiledFunctions,
} = require('./compiled_program');

// Each function that V8 saw in the program has to be where it stands in the source, with the name it has there.
function checkFunctions(folder, program, wanted) {
  const maps = new SourceMaps();
  const found = new Map();
  for (const { functionName, url, line, column } of profiledFunctions(program)) {
    const position = maps.map(url, line, column, functionName);
    if (position && FUNCTIONS.has(position.name)) found.set(position.name, position);
  }
  for (const name of wanted) {
    const { file, line } = FUNCTIONS.get(name);
    const position = found.get(name);
    assert.ok(position, `${name} was not found among ${[...found.keys()]}`);
    assert.strictEqual(position.file, path.join(folder, file), name);
    assert.strictEqual(position.line, line, name);
  }
  return maps;
}

const ALL = ['totalOfCart', 'discountOfCart', 'fillBasket', 'runShop'];

for (const [what, options] of [
  ['a file', ['--sourceMap']],
  ['the script itself', ['--inlineSourceMap']],
  ['a file, with a root of the sources', ['--sourceMap', '--sourceRoot', 'file://FOLDER/src']],
]) {
  test(`functions of TypeScript, with the map in ${what}`, () => inFolder((folder) => {
    const words = options.map((word) => word.replace('FOLDER', folder));
    const maps = checkFunctions(folder, compileByTypescript(folder, words), ALL);
    assert.deepStrictEqual(
      { read: maps.counters()['source_maps.read'], broken: maps.counters()['source_maps.broken'] },
      { read: 2, broken: 0 },
    );
  }));
}

for (const [what, options] of [
  ['a bundle of esbuild', ['--sourcemap']],
  ['a bundle of esbuild with its map inside', ['--sourcemap=inline']],
  ['a bundle of esbuild that does not name its map', ['--sourcemap=external']],
  ['a bundle of esbuild as a module', ['--sourcemap', '--format=esm', '--out-extension:.js=.mjs', '--outfile=out/bundle.mjs']],
]) {
  test(`functions of ${what}`, () => inFolder((folder) => {
    let program = compileByEsbuild(folder, options.filter((word) => !word.startsWith('--out-extension')));
    if (!fs.existsSync(program)) program = program.replace(/\.js$/, '.mjs');
    checkFunctions(folder, program, ALL);
  }));
}

// Methods keep their names; functions get theirs back from the map.
test('names that a minifier took away come back', () => inFolder((folder) => {
  const program = compileByEsbuild(folder, ['--sourcemap', '--minify']);
  const script = fs.readFileSync(program, 'utf8');
  assert.doesNotMatch(script, /totalOfCart\(|discountOfCart=/);
  checkFunctions(folder, program, ALL);
}));

// Of an index map: is what Node.js found from before the section that the position is in?
function isOfEarlierSection(map, entry, line, column) {
  const begun = (map.sections || []).filter(({ offset }) =>
    offset.line < line || (offset.line === line && offset.column <= column));
  if (begun.length === 0) return false;
  const { offset } = begun[begun.length - 1];
  return entry.generatedLine < offset.line ||
    (entry.generatedLine === offset.line && entry.generatedColumn < offset.column);
}

// Node.js has a reader of its own. It takes the last segment before a position even from another line or section.
function checkAgainstNode(folder, program, map, url) {
  const theirs = new SourceMap(map);
  const maps = new SourceMaps();
  const lines = fs.readFileSync(program, 'utf8').split('\n');
  let compared = 0;
  for (let line = 0; line < lines.length; ++line) {
    for (let column = 0; column < lines[line].length; column += 3) {
      const entry = theirs.findEntry(line, column);
      const position = maps.map(url, line + 1, column + 1, '');
      if (entry.generatedLine !== line || entry.originalSource === undefined ||
        isOfEarlierSection(map, entry, line, column)) {
        assert.strictEqual(position, undefined, `${line}:${column}`);
        continue;
      }
      ++compared;
      assert.deepStrictEqual(
        { file: position.file, line: position.line, column: position.column },
        {
          file: path.resolve(path.dirname(program), entry.originalSource),
          line: entry.originalLine + 1,
          column: entry.originalColumn + 1,
        },
        `${line}:${column}`,
      );
    }
  }
  assert.ok(compared > 200, String(compared));
}

test('every position is where Node.js finds it', () => inFolder((folder) => {
  const program = compileByEsbuild(folder, ['--sourcemap']);
  checkAgainstNode(folder, program, JSON.parse(fs.readFileSync(`${program}.map`, 'utf8')), program);
}));

test('every position of a map in sections is where Node.js finds it', () => inFolder((folder) => {
  const first = compileByTypescript(folder, ['--sourceMap']);
  const out = path.dirname(first);
  const parts = [first, path.join(out, 'shop', 'shop.js')].map((file) => ({
    script: fs.readFileSync(file, 'utf8').replace(/\/\/# sourceMappingURL.*\n?/, ''),
    map: JSON.parse(fs.readFileSync(`${file}.map`, 'utf8')),
  }));
  parts[1].map.sources = ['../src/shop/shop.ts'];
  const sections = [];
  let text = '/* joined */ ';
  for (const { script, map } of parts) {
    const line = text.split('\n').length - 1;
    sections.push({ offset: { line, column: text.split('\n')[line].length }, map });
    text += `${script.trimEnd()} /* next */ `;
  }
  const joined = path.join(out, 'joined.js');
  const map = { version: 3, sections };
  fs.writeFileSync(joined, `${text}\n//# sourceMappingURL=joined.js.map\n`);
  fs.writeFileSync(`${joined}.map`, JSON.stringify(map));
  checkAgainstNode(folder, joined, map, `file://${joined}`);
}));

function mapping(folder, map, comment = '//# sourceMappingURL=a.js.map') {
  const script = path.join(folder, 'a.js');
  fs.writeFileSync(script, `function f() {}\n${comment}\n`);
  fs.writeFileSync(`${script}.map`, typeof map === 'string' ? map : JSON.stringify(map));
  const maps = new SourceMaps({ bytes: 1 << 20 });
  const position = maps.map(script, 1, 10, 'f');
  const counters = maps.counters();
  return { position, counters };
}

const GOOD = { version: 3, sources: ['a.ts'], names: ['g'], mappings: 'AAAA,SAASA' };

test('what is wrong with a map is counted, and gives no position', () => inFolder((folder) => {
  assert.deepStrictEqual(mapping(folder, GOOD).position,
    { file: path.join(folder, 'a.ts'), line: 1, column: 10, name: 'g' });
  assert.strictEqual(mapping(folder, `)]}'\n${JSON.stringify(GOOD)}`).position.line, 1);
  const broken = {
    'not JSON': '{',
    'a list': '[]',
    'an old version': { ...GOOD, version: 2 },
    'no mappings': { ...GOOD, mappings: undefined },
    'sources that are none': { ...GOOD, sources: 7 },
    'a source that is a number': { ...GOOD, sources: [7] },
    'a source that is not there': { ...GOOD, mappings: 'ACAA' },
    'a name that is not there': { ...GOOD, mappings: 'AAAAC' },
    'a negative source': { ...GOOD, mappings: 'ADAA' },
    'a negative line': { ...GOOD, mappings: 'AADA' },
    'a negative column': { ...GOOD, mappings: 'DAAA' },
    'two fields': { ...GOOD, mappings: 'AA' },
    'six fields': { ...GOOD, mappings: 'AAAAAA' },
    'no digit': { ...GOOD, mappings: 'AA!A' },
    'a number without an end': { ...GOOD, mappings: 'AAAg' },
    'an endless number': { ...GOOD, mappings: `${'g'.repeat(100000)}A` },
    'a number of 40 bits': { ...GOOD, mappings: '//////////B' },
    'sections that are none': { version: 3, sections: {} },
    'a section without an offset': { version: 3, sections: [{ map: GOOD }] },
    'a section at a negative line': { version: 3, sections: [{ offset: { line: -1, column: 0 }, map: GOOD }] },
    'a section of another map': { version: 3, sections: [{ offset: { line: 0, column: 0 }, url: 'b.map' }] },
    'sections in no order': {
      version: 3,
      sections: [{ offset: { line: 1, column: 0 }, map: GOOD }, { offset: { line: 0, column: 0 }, map: GOOD }],
    },
  };
  for (const [what, map] of Object.entries(broken)) {
    const { position, counters } = mapping(folder, map);
    assert.strictEqual(position, undefined, what);
    assert.strictEqual(counters['source_maps.broken'], 1, what);
  }
}));

test('what cannot be read is counted by its reason', () => inFolder((folder) => {
  const count = (comment, map = GOOD) => {
    const { position, counters } = mapping(folder, map, comment);
    const seen = Object.entries(counters).filter(([, value]) => value > 0).map(([name]) => name.split('.')[1]);
    return `${position ? 'position' : 'none'} ${seen}`;
  };
  assert.strictEqual(count('//# sourceMappingURL=a.js.map'), 'position read');
  assert.strictEqual(count('// nothing'), 'position read'); // The file beside it.
  assert.strictEqual(count('//# sourceMappingURL=missing.map'), 'none none');
  assert.strictEqual(count('//# sourceMappingURL=.'), 'none none'); // A folder.
  assert.strictEqual(count('//# sourceMappingURL=https://localhost/a.js.map'), 'none remote');
  assert.strictEqual(count('//# sourceMappingURL=file://other/a.js.map'), 'none broken');
  assert.strictEqual(count('//# sourceMappingURL=data:application/json;base64'), 'none broken');
  assert.strictEqual(count('//# sourceMappingURL=data:application/json,%7'), 'none broken');
  assert.strictEqual(count('//# sourceMappingURL=a.js.map', { ...GOOD, x: 'x'.repeat(2 << 20) }), 'none too_large');
  assert.strictEqual(count('//# sourceMappingURL=a.js.map', { ...GOOD, mappings: 'AAAA,'.repeat(1e5) }),
    'none too_large');
  // A text in the code is no comment.
  const script = path.join(folder, 'a.js');
  fs.rmSync(`${script}.map`);
  fs.writeFileSync(script, 'const s = `\n//# sourceMappingURL=b.map\n`;\nfunction f() {}\n');
  fs.writeFileSync(path.join(folder, 'b.map'), JSON.stringify(GOOD));
  assert.strictEqual(new SourceMaps().map(script, 1, 1, 'f'), undefined);
}));

// A program may call a script what it likes. These would never end.
test('only plain files are read', () => inFolder((folder) => {
  const maps = new SourceMaps();
  const pipe = path.join(folder, 'pipe.js');
  require('node:child_process').execFileSync('mkfifo', [pipe]);
  for (const url of [pipe, '/dev/zero', '/dev/stdin', folder, 'file:///dev/zero', 'node:fs', 'evalmachine.<anonymous>',
    'file://%00', '', 'wasm://wasm/1', 'http://localhost/a.js']) {
    assert.strictEqual(maps.map(url, 1, 1, 'f'), undefined, url);
  }
}));

test('maps that were changed at random never do harm', () => inFolder((folder) => {
  const program = compileByEsbuild(folder, ['--sourcemap', '--minify']);
  const good = fs.readFileSync(`${program}.map`);
  let seed = 12345;
  const random = (below) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed % below;
  };
  let positions = 0;
  let refused = 0;
  for (let round = 0; round < 400; ++round) {
    const bad = Buffer.from(good);
    for (let i = random(6); i >= 0; --i) bad[random(bad.length)] = random(256);
    fs.writeFileSync(`${program}.map`, bad);
    const maps = new SourceMaps();
    const position = maps.map(program, 1, 1 + random(600), 'f');
    if (position) {
      ++positions;
      assert.ok(position.line >= 1 && position.column >= 1 && typeof position.file === 'string');
    }
    refused += maps.counters()['source_maps.broken'];
  }
  assert.ok(positions > 10 && refused > 10, `${positions} positions, ${refused} refused`);
}));

test('what is kept is bounded', () => inFolder((folder) => {
  const maps = new SourceMaps({ scripts: 3 });
  for (let i = 0; i < 10; ++i) {
    const script = path.join(folder, `s${i}.js`);
    fs.writeFileSync(script, `function f() {}\n//# sourceMappingURL=s${i}.js.map\n`);
    fs.writeFileSync(`${script}.map`, JSON.stringify(GOOD));
    assert.strictEqual(maps.map(script, 1, 10, 'f').name, 'g');
  }
  assert.strictEqual(maps.counters()['source_maps.forgotten'], 7);
  assert.strictEqual(maps.map(path.join(folder, 's0.js'), 1, 10, 'f').name, 'g');
  assert.strictEqual(maps.counters()['source_maps.read'], 11);
}));
