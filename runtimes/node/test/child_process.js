'use strict';
// Programs of tests: each runs in a process of its own.

const assert = require('assert');
const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { readSamples } = require('./package/read_profile');

const DEFAULT_SECONDS = 120;

// Resolves with {status, signal, stdout, stderr}. Rejects, with what the program has printed, if it has not ended after
// `seconds`: not even its own children, which may hold its output open, keep a test waiting.
function runNode(words, { options = [], environment = {}, folder = __dirname, seconds = DEFAULT_SECONDS } = {}) {
  return new Promise((resolve, reject) => {
    const child = childProcess.spawn(process.execPath, [...options, ...words], {
      cwd: folder,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', (part) => { output[stream] += part; });
    }
    const limit = setTimeout(() => {
      child.kill('SIGKILL');
      for (const stream of ['stdout', 'stderr']) child[stream].destroy();
      const printed = `standard output: ${output.stdout}\nstandard error: ${output.stderr}`;
      reject(new Error(`${[...options, ...words].join(' ')} has not ended after ${seconds} s\n${printed}`));
    }, seconds * 1000);
    child.on('error', (error) => {
      clearTimeout(limit);
      reject(error);
    });
    child.on('close', (status, signal) => {
      clearTimeout(limit);
      resolve({ status, signal, ...output });
    });
  });
}

const folders = [];
process.on('exit', () => folders.forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));

// A folder of its own for each test, gone with the process.
function newFolder() {
  folders.push(fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-node-')));
  return folders[folders.length - 1];
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
  return { ...ended, folder, file, program, samples: () => readSamples(file), samplesOf: readSamples };
}

function assertEndedWell(ended, status = 0) {
  assert.deepStrictEqual([ended.status, ended.signal], [status, null], ended.stderr);
}

module.exports = { assertEndedWell, newFolder, runNode, runText };
