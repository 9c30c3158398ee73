'use strict';
// Programs of tests: each runs in a process of its own, in a folder that has the package as users have it.

const childProcess = require('child_process');
const fs = require('fs');
const path = require('path');
const { PACKAGE } = require('./compiled_program');

// The tree's own package and what it is tested with, without a copy.
function linkPackage(folder) {
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(modules, { recursive: true });
  fs.symlinkSync(PACKAGE, path.join(modules, 'spanprof'));
  fs.symlinkSync(path.join(PACKAGE, 'node_modules', '@opentelemetry'), path.join(modules, '@opentelemetry'));
}

// Runs text as folder/NAME. Resolves with {status, signal, stdout, stderr}.
function runProgram(folder, text, { name = 'app.js', options = [], environment = {}, seconds = 60 } = {}) {
  fs.writeFileSync(path.join(folder, name), text);
  return new Promise((resolve, reject) => {
    const child = childProcess.spawn(process.execPath, [...options, name], {
      cwd: folder,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: seconds * 1000,
      killSignal: 'SIGKILL',
    });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', (part) => {
        output[stream] += part;
      });
    }
    child.on('error', reject);
    child.on('close', (status, signal) => resolve({ status, signal, ...output }));
  });
}

// A function for programs, that takes time and keeps its name.
const BURN = `
  function burnFor(milliseconds) {
    const end = process.hrtime.bigint() + BigInt(milliseconds) * 1000000n;
    let sum = 0;
    while (process.hrtime.bigint() < end) for (let i = 0; i < 2000; ++i) sum += Math.sqrt(i);
    return sum;
  }
`;

module.exports = { BURN, linkPackage, runProgram };
