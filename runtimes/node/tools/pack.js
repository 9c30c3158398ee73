#!/usr/bin/env node
'use strict';
// Packs the package: pack.js OUTPUT_FOLDER, and prints the file. It carries the core's sources and the headers that
// they need, so that it compiles with a C++ compiler and zlib alone, and every addon that was built in the tree
// (native/), for those who have no compiler.

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const PACKAGE = path.resolve(__dirname, '..');
const TREE = path.resolve(PACKAGE, '..', '..');

// The manifest decides what is packed: only what it names is copied, so that nothing else needs to be there.
function copyPackage(folder) {
  for (const name of ['dist', 'src', 'tools', 'README.md', '.npmrc']) {
    fs.cpSync(path.join(PACKAGE, name), path.join(folder, name), { recursive: true });
  }
  const manifest = JSON.parse(fs.readFileSync(path.join(PACKAGE, 'package.json'), 'utf8'));
  delete manifest.devDependencies;
  manifest.scripts = { install: manifest.scripts.install };
  fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  fs.copyFileSync(path.join(TREE, 'LICENSE'), path.join(folder, 'LICENSE'));
  childProcess.execFileSync(path.join(TREE, 'tools', 'core_sources'), ['--pack', path.join(folder, 'core')]);
}

function copyPrebuilds(folder) {
  const built = path.join(PACKAGE, 'native');
  if (!fs.existsSync(built)) return;
  for (const platform of fs.readdirSync(built)) {
    for (const name of fs.readdirSync(path.join(built, platform)).filter((file) => /^\d+\.node$/.test(file))) {
      fs.mkdirSync(path.join(folder, 'prebuilds', platform), { recursive: true });
      fs.copyFileSync(path.join(built, platform, name), path.join(folder, 'prebuilds', platform, name));
    }
  }
}

function pack(output) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-package-'));
  try {
    copyPackage(folder);
    copyPrebuilds(folder);
    fs.mkdirSync(output, { recursive: true });
    const printed = childProcess.execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', output],
      { cwd: folder, encoding: 'utf8' });
    return path.join(output, printed.trim().split('\n').pop());
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv.length !== 3) {
  process.stderr.write('usage: pack.js OUTPUT_FOLDER\n');
  process.exit(2);
}
process.stdout.write(`${pack(path.resolve(process.argv[2]))}\n`);
