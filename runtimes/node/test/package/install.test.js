'use strict';
// No installation fails because profiling is not possible, and the package says why it does nothing.
const assert = require('node:assert');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { reasonAgainst } = require('../../tools/install_check');
const { PACKAGE, inFolder } = require('./compiled_program');
const { EVERY_CALL, runInstallScript, unpackInto, useInstalled } = require('./installed_package');

const LINUX = { platform: 'linux', arch: 'x64', versions: { node: '24.1.0' } };

test('what is known before a compiler is tried', () => {
  assert.strictEqual(reasonAgainst({}, LINUX), undefined);
  assert.strictEqual(reasonAgainst({}, { ...LINUX, arch: 'arm64' }), undefined);
  assert.strictEqual(reasonAgainst({ SPANPROF_NO_EXTENSION: 'no' }, LINUX), undefined);
  const refused = {
    SPANPROF_NO_EXTENSION: [{ SPANPROF_NO_EXTENSION: 'true' }, LINUX],
    darwin: [{}, { ...LINUX, platform: 'darwin' }],
    win32: [{}, { ...LINUX, platform: 'win32' }],
    riscv64: [{}, { ...LINUX, arch: 'riscv64' }],
    'Node.js 18.19.0': [{}, { ...LINUX, versions: { node: '18.19.0' } }],
    'bun 1.2.0': [{}, { ...LINUX, versions: { node: '24.1.0', bun: '1.2.0' } }],
    'electron 30.0.0': [{}, { ...LINUX, versions: { node: '24.1.0', electron: '30.0.0' } }],
  };
  for (const [expected, [environment, host]] of Object.entries(refused)) {
    assert.ok(String(reasonAgainst(environment, host)).includes(expected), expected);
  }
});

// Installs with this environment and expects a package that does nothing, for this reason.
function checkNothing(folder, target, environment, reason) {
  const installed = runInstallScript(target, environment);
  assert.strictEqual(installed.status, 0, installed.output);
  assert.match(installed.output, reason);
  const { printed, errors } = useInstalled(folder, EVERY_CALL);
  assert.strictEqual(printed.value, 42);
  assert.strictEqual(printed.addon, false);
  assert.strictEqual(printed.recording, false);
  assert.match(printed.reason, reason);
  assert.match(errors, /^spanprof: nothing is recorded: /m);
}

function linkTools(folder, names) {
  const tools = path.join(folder, 'tools');
  fs.mkdirSync(tools, { recursive: true });
  for (const name of names) {
    fs.symlinkSync(childProcess.execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(),
      path.join(tools, name));
  }
  return tools;
}

test('a package without an addon installs, does nothing, and says why', async (context) => {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'spanprof-install-')));
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const target = unpackInto(folder);
  fs.rmSync(path.join(target, 'prebuilds'), { recursive: true, force: true });

  await context.test('it can be left out', () => {
    checkNothing(folder, target, { SPANPROF_NO_EXTENSION: 'true' }, /SPANPROF_NO_EXTENSION was set/);
  });

  // As far as a Node.js on Linux can play another: what the package asks is what it is told.
  await context.test('another system is a reason', () => {
    const other = path.join(folder, 'other.js');
    for (const [name, value] of [['platform', 'darwin'], ['platform', 'win32'], ['arch', 'riscv64']]) {
      fs.writeFileSync(other, `Object.defineProperty(process, '${name}', { value: '${value}' });`);
      const installed = runInstallScript(target, {}, { options: ['-r', other] });
      assert.strictEqual(installed.status, 0, installed.output);
      const { printed } = useInstalled(folder, EVERY_CALL, ['-r', other]);
      assert.strictEqual(printed.addon, false);
      assert.match(printed.reason, new RegExp(value));
    }
  });

  await context.test('there need be no compiler', () => {
    checkNothing(folder, target, { PATH: linkTools(folder, ['sh']) }, /there is no C\+\+20 compiler/);
  });

  await context.test('an old compiler is a reason', () => {
    const old = path.join(folder, 'old-compiler');
    fs.writeFileSync(old, '#!/bin/sh\ncase "$*" in *++20*) echo "error: unrecognized option" >&2; exit 1;; esac\nexec g++ "$@"\n',
      { mode: 0o755 });
    checkNothing(folder, target, { CXX: old }, /there is no C\+\+20 compiler.*unrecognized option/);
  });

  await context.test('there need be no headers', () => {
    // A Node.js that has none beside it, and an npm that has no node-gyp.
    const lonely = path.join(folder, 'lonely', 'bin', 'node');
    fs.mkdirSync(path.dirname(lonely), { recursive: true });
    fs.copyFileSync(process.execPath, lonely);
    const environment = { npm_config_nodedir: '/nonexistent', npm_config_node_gyp: '', XDG_CACHE_HOME: folder, npm_config_devdir: '' };
    const installed = runInstallScript(target, environment, { program: lonely });
    assert.strictEqual(installed.status, 0, installed.output);
    assert.match(installed.output, /Node\.js's headers are missing: .*no node-gyp/);
    assert.match(useInstalled(folder, EVERY_CALL).printed.reason, /headers are missing/);
  });

  await context.test('headers of another Node.js are not taken', () => {
    const wrong = path.join(folder, 'wrong', 'include', 'node');
    fs.mkdirSync(wrong, { recursive: true });
    fs.writeFileSync(path.join(wrong, 'node_version.h'), '#define NODE_MODULE_VERSION 93\n');
    const { findHeaders } = require('../../tools/headers');
    const found = findHeaders({ npm_config_nodedir: path.join(folder, 'wrong'), XDG_CACHE_HOME: folder });
    assert.notStrictEqual(found.folder, wrong);
  });

  await context.test('there need be no sources', () => {
    const core = path.join(target, 'core');
    fs.renameSync(core, `${core}.away`);
    try {
      checkNothing(folder, target, {}, /the core's sources are not in the package/);
    } finally {
      fs.renameSync(`${core}.away`, core);
    }
  });

  await context.test('packagers can have it fail', () => {
    const installed = runInstallScript(target,
      { SPANPROF_NO_EXTENSION: 'true', SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION: 'true' });
    assert.strictEqual(installed.status, 1);
    assert.match(installed.output, /SPANPROF_NO_EXTENSION was set/);
  });

  await context.test('install scripts need not run', () => {
    fs.rmSync(path.join(target, 'native'), { recursive: true, force: true });
    assert.match(useInstalled(folder, EVERY_CALL).printed.reason, /there is no addon for linux-x64-glibc with ABI \d+/);
  });

  await context.test('a prebuilt addon that does not load is no reason to fail', () => {
    const { addonPath } = require('../../tools/platform');
    const prebuilt = addonPath(path.join(target, 'prebuilds'));
    fs.mkdirSync(path.dirname(prebuilt), { recursive: true });
    fs.writeFileSync(prebuilt, 'not a library');
    checkNothing(folder, target, { PATH: linkTools(path.join(folder, 'bare'), ['sh']) }, /prebuilt: .*(invalid ELF|too short)/);
    fs.rmSync(path.join(target, 'native'), { recursive: true, force: true });
    assert.match(useInstalled(folder, EVERY_CALL).printed.reason, /the addon cannot be loaded/);
  });
});

// The types, as a program of TypeScript finds them by each way of resolving.
for (const resolution of ['node16', 'node10']) {
  test(`types, with the resolution ${resolution}`, () => inFolder((folder) => {
    fs.mkdirSync(path.join(folder, 'node_modules', '@types'), { recursive: true });
    fs.symlinkSync(PACKAGE, path.join(folder, 'node_modules', 'spanprof'));
    for (const name of ['@types/node', 'undici-types']) {
      fs.symlinkSync(path.join(PACKAGE, 'node_modules', name), path.join(folder, 'node_modules', name));
    }
    const program = `
      import { AsyncLocalStorage } from 'async_hooks';
      import * as spanprof from 'spanprof';
      import { follow, type FollowState, followState } from 'spanprof/opentelemetry';
      const storage = new AsyncLocalStorage<{ id: string }>();
      spanprof.start({ wall: '10ms', cpu: true, file: 'a.pb.gz' });
      spanprof.attach(storage, (store) => ({ spanId: store.id }));
      const sum: number = spanprof.runWithContext({ spanId: 1n }, (a: number, b: number) => a + b, 1, 2);
      follow();
      const state: FollowState = followState();
      console.log(sum, state.spans, spanprof.status().reason);
    `;
    const compile = (text) => {
      fs.writeFileSync(path.join(folder, 'app.ts'), text);
      return childProcess.spawnSync(process.execPath, [path.join(PACKAGE, 'node_modules', 'typescript', 'bin', 'tsc'), '--noEmit',
        '--strict', '--target', 'ES2022', '--types', 'node', '--module', resolution === 'node16' ? 'node16' : 'commonjs',
        '--moduleResolution', resolution, 'app.ts'], { cwd: folder, encoding: 'utf8' });
    };
    const good = compile(program);
    assert.strictEqual(good.status, 0, good.stdout);
    assert.match(compile(program.replace('store.id }', 'store.nothing }')).stdout, /nothing/);
  }));
}

test('the packed file has what it needs and nothing else', () => inFolder((folder) => {
  const target = unpackInto(folder);
  const files = fs.readdirSync(target, { recursive: true }).map(String)
    .filter((name) => fs.statSync(path.join(target, name)).isFile());
  for (const wanted of ['dist/index.js', 'dist/index.d.ts', 'dist/auto.js', 'dist/opentelemetry.js', 'tools/install.js',
    'core/sources.txt', 'core/third_party/tl/expected.hpp', 'core/include/spanprof/context.h', 'src/exports.txt',
    'LICENSE', 'README.md']) {
    assert.ok(files.includes(wanted), wanted);
  }
  const unwanted = files.filter((name) => /_test\.cc$|^test\/|node_modules|\.map$|^ts\/|tools\/(pack|test_reporter)/.test(name));
  assert.deepStrictEqual(unwanted, []);
  for (const source of fs.readFileSync(path.join(target, 'core', 'sources.txt'), 'utf8').trim().split('\n')) {
    assert.ok(files.includes(`core/${source}`), source);
  }
  const manifest = JSON.parse(fs.readFileSync(path.join(target, 'package.json'), 'utf8'));
  for (const entry of Object.values(manifest.exports)) {
    for (const file of typeof entry === 'string' ? [entry] : Object.values(entry)) {
      assert.ok(files.includes(file.slice(2)), file);
    }
  }
}));
