'use strict';
// The addon that uses SIGPROF beside us, compiled for the Node.js under test.

const assert = require('assert');
const childProcess = require('child_process');
const fs = require('fs');
const path = require('path');
const { newFolder } = require('./child_process');

// The headers that came with this Node.js.
const HEADERS = path.resolve(process.execPath, '..', '..', 'include', 'node');

// Why it cannot be compiled; false if it can.
function signalUserProblem() {
  const compiler = childProcess.spawnSync('g++', ['--version']).status === 0;
  return compiler && fs.existsSync(HEADERS) ? false : 'g++ or headers are missing';
}

let addon;

// Gives the addon's path.
function compileSignalUser() {
  if (addon !== undefined) return addon;
  addon = path.join(newFolder(), 'signal_user.node');
  const compiled = childProcess.spawnSync('g++', ['-shared', '-fPIC', '-O1', '-std=gnu++20', '-isystem', HEADERS,
    '-DNODE_GYP_MODULE_NAME=signal_user', path.join(__dirname, 'programs', 'signal_user.cc'), '-o', addon]);
  assert.strictEqual(compiled.status, 0, String(compiled.stderr));
  return addon;
}

module.exports = { compileSignalUser, signalUserProblem };
