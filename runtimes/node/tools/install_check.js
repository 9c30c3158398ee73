'use strict';
// Why the addon is not compiled here, if it is not. Runs in any Node.js, and must not fail: no installation ends
// because profiling is not possible.

const OLDEST_NODE = 20;

// Undefined: as far as can be seen before a compiler is tried, it can be.
function reasonAgainst(environment, host) {
  if (isEnabled(environment.SPANPROF_NO_EXTENSION)) {
    return 'SPANPROF_NO_EXTENSION was set when the package was installed; install it again without';
  }
  for (const name of ['bun', 'deno', 'electron']) {
    if (host.versions[name]) return `this is ${name} ${host.versions[name]}: only the V8 of Node.js can be sampled`;
  }
  if (host.platform !== 'linux') return `the operating system is ${host.platform}: the sampler is for Linux`;
  if (host.arch !== 'x64' && host.arch !== 'arm64') {
    return `the processor is ${host.arch}: the sampler is for x64 and arm64`;
  }
  if (parseInt(host.versions.node, 10) < OLDEST_NODE) {
    return `this is Node.js ${host.versions.node}: ${OLDEST_NODE} or newer is needed`;
  }
  return undefined;
}

// For packagers, who would rather have an installation that fails.
function mustSucceed(environment) {
  return isEnabled(environment.SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION);
}

function isEnabled(value) {
  return ['true', '1', 'yes', 'on'].includes(String(value || '').trim().toLowerCase());
}

module.exports = { isEnabled, mustSucceed, reasonAgainst };
