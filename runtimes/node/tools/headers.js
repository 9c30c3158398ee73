'use strict';
// Node.js's headers for the running Node.js: beside its program, where npm was told, or where node-gyp keeps them.

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

function candidates(environment) {
  const folders = [];
  if (environment.npm_config_nodedir) folders.push(path.join(environment.npm_config_nodedir, 'include', 'node'));
  folders.push(path.resolve(fs.realpathSync(process.execPath), '..', '..', 'include', 'node'));
  folders.push(keptByNodeGyp(environment));
  return folders;
}

function keptByNodeGyp(environment) {
  const caches = environment.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  const folder = environment.npm_config_devdir || path.join(caches, 'node-gyp');
  return path.join(folder, process.versions.node, 'include', 'node');
}

// Undefined: they are of this Node.js. A folder that npm was told long ago may have another one's.
function reasonAgainstHeaders(folder) {
  let text;
  try {
    text = fs.readFileSync(path.join(folder, 'node_version.h'), 'utf8');
  } catch (error) {
    return `${folder} has no node_version.h`;
  }
  const found = /^#define NODE_MODULE_VERSION (\d+)/m.exec(text);
  if (!found || found[1] !== process.versions.modules) {
    return `${folder} is of a Node.js with the ABI ${found ? found[1] : 'unknown'}, ` +
      `and ${process.versions.modules} is needed`;
  }
  return fs.existsSync(path.join(folder, 'v8-profiler.h')) ? undefined : `${folder} has no v8-profiler.h`;
}

// Returns {folder} or {reason}.
function findHeaders(environment) {
  const reasons = [];
  for (const folder of candidates(environment)) {
    const reason = reasonAgainstHeaders(folder);
    if (!reason) return { folder };
    reasons.push(reason);
  }
  const fetched = fetchByNodeGyp(environment);
  if (!fetched) {
    const folder = keptByNodeGyp(environment);
    const reason = reasonAgainstHeaders(folder);
    if (!reason) return { folder };
    reasons.push(reason);
  } else {
    reasons.push(fetched);
  }
  return { reason: reasons.join('; ') };
}

// npm names its own node-gyp to the scripts of a package. Undefined: it has fetched them.
function fetchByNodeGyp(environment) {
  const program = environment.npm_config_node_gyp;
  if (!program || !fs.existsSync(program)) return 'there is no node-gyp to fetch them';
  // A nodedir would keep it from fetching.
  const clean = Object.assign({}, environment);
  delete clean.npm_config_nodedir;
  const answer = childProcess.spawnSync(process.execPath, [program, 'install', '--ensure'],
    { encoding: 'utf8', env: clean, timeout: 120000, cwd: os.tmpdir() });
  if (answer.error) return `node-gyp could not fetch them: ${answer.error.message}`;
  if (answer.status === 0) return undefined;
  const line = answer.stderr.split('\n').find((text) => /ERR! (stack )?(Error|.*(failed|response))/.test(text));
  return `node-gyp could not fetch them: ${(line || `exit status ${answer.status}`).trim().slice(0, 200)}`;
}

module.exports = { findHeaders };
