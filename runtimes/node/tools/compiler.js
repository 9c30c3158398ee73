'use strict';
// Calls of the C++ compiler: one at a time with an answer, or many side by side.

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

// CXX may have words of its own ("g++ -m64"), and a launcher such as ccache stands before it.
function compilerWords(environment) {
  const launcher = (environment.SPANPROF_COMPILER_LAUNCHER || '').split(' ');
  const compiler = (environment.CXX || 'g++').split(' ');
  return launcher.concat(compiler).filter((word) => word !== '');
}

// Compiles (and links, with words that say so) a small program in a folder of its own. Undefined: it worked.
function tryProgram(text, words, environment) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-try-'));
  try {
    const source = path.join(folder, 'try.cc');
    fs.writeFileSync(source, text);
    const compiler = compilerWords(environment);
    const answer = childProcess.spawnSync(
      compiler[0],
      compiler.slice(1).concat(['-std=gnu++20', source, '-o', path.join(folder, 'try')], words),
      { encoding: 'utf8', env: environment },
    );
    if (answer.error) return answer.error.message;
    return answer.status === 0 ? undefined : firstError(answer.stderr);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function firstError(output) {
  const lines = String(output).split('\n');
  const line = lines.find((text) => /error|cannot/.test(text)) || lines[0] || '';
  return line.trim().slice(0, 300);
}

// Runs the calls, as many at once as there are jobs. Rejects with the first one that fails, after those that had
// begun are done.
function runAll(calls, jobs) {
  return new Promise((resolve, reject) => {
    let next = 0;
    let running = 0;
    let failure;
    const advance = () => {
      while (!failure && running < jobs && next < calls.length) start(calls[next++]);
      if (running === 0) {
        if (failure) reject(failure);
        else resolve();
      }
    };
    const start = (call) => {
      ++running;
      run(call).then(
        () => {
          --running;
          advance();
        },
        (error) => {
          --running;
          failure = failure || error;
          advance();
        },
      );
    };
    advance();
  });
}

// One call: words, of which the first is the program. What it prints is kept for the message.
function run(words) {
  return new Promise((resolve, reject) => {
    const child = childProcess.spawn(words[0], words.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (text) => {
      if (output.length < 1 << 20) output += text;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('error', reject);
    child.on('close', (status, signal) => {
      if (status === 0) {
        if (output !== '') process.stderr.write(output);
        resolve();
        return;
      }
      const error = new Error(`${words[0]} ended with ${signal || status}: ${firstError(output)}`);
      error.output = output;
      reject(error);
    });
  });
}

module.exports = { compilerWords, run, runAll, tryProgram };
