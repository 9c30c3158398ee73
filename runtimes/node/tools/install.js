#!/usr/bin/env node
'use strict';
// Run by npm when the package is installed: makes sure that there is an addon for this Node.js, a prebuilt one that
// loads here or one compiled now. Where neither works it leaves the reason in native/missing.json, which
// status() tells, and ends well.
//   SPANPROF_NO_EXTENSION=true                       no addon
//   SPANPROF_BUILD_FROM_SOURCE=true                  no prebuilt one (also npm's --build-from-source)
//   SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true  a missing addon is an error

const fs = require('fs');
const path = require('path');
const { isEnabled, mustSucceed, reasonAgainst } = require('./install_check');
const { reasonAgainstLoading } = require('./loading');

const PACKAGE = path.resolve(__dirname, '..');
const NATIVE = path.join(PACKAGE, 'native');
const MISSING = path.join(NATIVE, 'missing.json');

class LeftOut extends Error {}

function wantsSource(environment) {
  return isEnabled(environment.SPANPROF_BUILD_FROM_SOURCE) ||
    ['true', 'spanprof'].includes(environment.npm_config_build_from_source);
}

// What the compiler has to be able to do, with a reason for people when it is not.
function checkCompiler(core) {
  const { tryProgram } = require('./compiler');
  const includes = core.includes.map((folder) => `-I${folder}`).concat('-c');
  const modern = '#include <concepts>\n#include <span>\n#include <string>\n' +
    'template <std::integral T> T same(T t) { return t; }\nint main() { std::string s("x"); return same(0); }\n';
  const problem = tryProgram(modern, [], process.env);
  if (problem) throw new LeftOut(`there is no C++20 compiler that works: install g++ 12 or newer (${problem})`);
  for (const header of ['tl/expected.hpp', 'protozero/pbf_writer.hpp', 'tsl/robin_map.h', 'zlib.h']) {
    if (!tryProgram(`#include <${header}>\nint main() { return 0; }\n`, includes, process.env)) continue;
    throw new LeftOut(`the header ${header} is missing${header === 'zlib.h' ? ': install zlib1g-dev' : ''}`);
  }
}

async function compile(output) {
  const core = require('./core_sources').findCore(PACKAGE);
  if (!core) throw new LeftOut("the core's sources are not in the package");
  checkCompiler(core);
  const headers = require('./headers').findHeaders(process.env);
  if (!headers.folder) throw new LeftOut(`Node.js's headers are missing: ${headers.reason}`);
  const objects = path.join(NATIVE, 'objects');
  try {
    await require('./build').build({ output, headers: headers.folder, objects });
  } catch (error) {
    throw new LeftOut(`the addon could not be compiled: ${error.message}`);
  } finally {
    fs.rmSync(objects, { recursive: true, force: true });
  }
  const problem = reasonAgainstLoading(output);
  if (problem) {
    fs.rmSync(output, { force: true });
    throw new LeftOut(`the addon was compiled and cannot be loaded: ${problem}`);
  }
}

async function install() {
  const reason = reasonAgainst(process.env, process);
  if (reason) throw new LeftOut(reason);
  const { addonPath } = require('./platform');
  const prebuilt = addonPath(path.join(PACKAGE, 'prebuilds'));
  let whyNotPrebuilt = 'not wanted';
  if (!wantsSource(process.env)) {
    whyNotPrebuilt = fs.existsSync(prebuilt) ? reasonAgainstLoading(prebuilt) : 'there is none for this Node.js';
    if (!whyNotPrebuilt) return `uses ${path.relative(PACKAGE, prebuilt)}`;
  }
  const compiled = addonPath(NATIVE);
  try {
    await compile(compiled);
  } catch (error) {
    error.message += ` (prebuilt: ${whyNotPrebuilt})`;
    throw error;
  }
  return `compiled ${path.relative(PACKAGE, compiled)}`;
}

// Written for the Node.js that installed it: another one may find an addon that suits it.
function leaveReason(reason) {
  fs.mkdirSync(NATIVE, { recursive: true });
  const node = isEnabled(process.env.SPANPROF_NO_EXTENSION) ? 'any' : process.versions.modules;
  fs.writeFileSync(MISSING, `${JSON.stringify({ reason, node })}\n`);
}

function main() {
  fs.rmSync(NATIVE, { recursive: true, force: true });
  install().then(
    (what) => process.stdout.write(`spanprof: ${what}\n`),
    (error) => {
      const reason = error.message;
      if (mustSucceed(process.env)) {
        process.stderr.write(`spanprof: ${reason}\n` +
          'spanprof: SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION is set, so this is an error\n');
        process.exitCode = 1;
        return;
      }
      process.stderr.write(`spanprof: installed without its addon, and will do nothing: ${reason}\n`);
      leaveReason(reason);
    },
  );
}

main();
