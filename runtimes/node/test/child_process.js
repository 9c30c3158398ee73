'use strict';
// Programs of tests: each runs in a process of its own.

const assert = require('assert');
const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { readSamples } = require('./package/read_profile');

// Resolves with {status, signal, stdout, stderr}.
function runNode(words, { options = [], environment = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = childProcess.spawn(process.execPath, [...options, ...words], {
      cwd: __dirname,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 280000,
      killSignal: 'SIGKILL',
    });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', (part) => { output[stream] += part; });
    }
    child.on('error', reject);
    child.on('close', (status, signal) => resolve({ status, signal, ...output }));
  });
}

// A folder of its own for each test, gone with the process.
function newFolder() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-node-'));
  process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const PRELUDE = `
  const spanprof = require(${JSON.stringify(path.resolve(__dirname, '..'))});
  const { burnFor, named } = require(${JSON.stringify(path.join(__dirname, 'programs', 'burn.js'))});
  const { Worker, isMainThread, parentPort } = require('worker_threads');
  const file = process.argv[2];
`;

// Runs the text as a program whose first argument is the profile's file.
async function runText(text, options = {}) {
  const folder = newFolder();
  const program = path.join(folder, 'app.js');
  fs.writeFileSync(program, PRELUDE + text);
  const file = path.join(folder, 'profile.pb.gz');
  const ended = await runNode([program, file], options);
  return { ...ended, folder, file, program, samples: () => readSamples(file) };
}

function assertEndedWell(ended, status = 0) {
  assert.deepStrictEqual([ended.status, ended.signal], [status, null], ended.stderr);
}

module.exports = { assertEndedWell, newFolder, runNode, runText };
