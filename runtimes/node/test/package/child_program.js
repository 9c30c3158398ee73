'use strict';
// Programs of tests: each runs in a process of its own, in a folder that has the package as users have it.

const fs = require('fs');
const path = require('path');
const { runNode } = require('../child_process');
const { burnFor } = require('../programs/burn');
const { PACKAGE } = require('./compiled_program');

// The tree's own package and what it is tested with, without a copy.
function linkPackage(folder) {
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(modules, { recursive: true });
  fs.symlinkSync(PACKAGE, path.join(modules, 'spanprof'));
  fs.symlinkSync(path.join(PACKAGE, 'node_modules', '@opentelemetry'), path.join(modules, '@opentelemetry'));
}

// Runs text as folder/NAME, as runNode does.
function runProgram(folder, text, { name = 'app.js', ...options } = {}) {
  fs.writeFileSync(path.join(folder, name), text);
  return runNode([name], { folder, ...options });
}

// A function for programs, that takes time and keeps its name.
const BURN = String(burnFor);

module.exports = { BURN, linkPackage, runProgram };
