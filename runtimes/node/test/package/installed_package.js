'use strict';
// The package as npm packs it, unpacked and installed in a folder of its own.

const childProcess = require('child_process');
const fs = require('fs');
const path = require('path');
const { PACKAGE } = require('./compiled_program');

// Packs the tree's package and unpacks it. Returns the folder that npm would call node_modules/spanprof.
function unpackInto(folder) {
  const packed = childProcess.execFileSync(process.execPath, [path.join(PACKAGE, 'tools', 'pack.js'), folder],
    { encoding: 'utf8' }).trim();
  const target = path.join(folder, 'node_modules', 'spanprof');
  fs.mkdirSync(target, { recursive: true });
  childProcess.execFileSync('tar', ['-xzf', packed, '-C', target, '--strip-components=1']);
  return target;
}

// What npm does after it has unpacked the package. Returns {status, output}.
function runInstallScript(target, environment = {}, { program = process.execPath, options = [] } = {}) {
  const answer = childProcess.spawnSync(program, [...options, path.join(target, 'tools', 'install.js')], {
    cwd: target,
    encoding: 'utf8',
    env: { ...process.env, npm_config_nodedir: '', ...environment },
    timeout: 600000,
  });
  return { status: answer.status, output: answer.stdout + answer.stderr };
}

// A program in the folder that has the package. Returns what it printed, as JSON.
function useInstalled(folder, text, options = []) {
  const program = path.join(folder, 'program.js');
  fs.writeFileSync(program, text);
  const answer = childProcess.spawnSync(process.execPath, [...options, program],
    { cwd: folder, encoding: 'utf8', timeout: 60000 });
  if (answer.status !== 0) throw new Error(`the program ended with ${answer.signal || answer.status}: ${answer.stderr}`);
  return { printed: JSON.parse(answer.stdout), errors: answer.stderr };
}

// Every call there is: without an addon all of them work, and do nothing.
const EVERY_CALL = `
  const spanprof = require('spanprof');
  const { AsyncLocalStorage } = require('async_hooks');
  (async () => {
    spanprof.start({ cpu: '1ms', file: '/nonexistent/profile.pb.gz' });
    spanprof.attach(new AsyncLocalStorage(), () => undefined);
    spanprof.detach();
    spanprof.setContext({ spanId: 1n });
    const value = spanprof.runWithContext({ spanId: '00f067aa0ba902b7', tags: { a: 'b' } }, (x) => x + 1, 41);
    spanprof.setEndpoint('00f067aa0ba902b7', 'x');
    await spanprof.dump('x.pb.gz');
    await spanprof.stop();
    require('spanprof/opentelemetry').follow();
    const { addon, reason, recording } = spanprof.status();
    console.log(JSON.stringify({ value, addon, reason, recording }));
  })();
`;

module.exports = { EVERY_CALL, runInstallScript, unpackInto, useInstalled };
