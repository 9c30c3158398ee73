'use strict';
// The sources of the core that the addon is compiled from. In the packed package they lie in core/, with a list of
// them; in spanprof's own tree they are where they are, and tools/core_sources is the list.

const childProcess = require('child_process');
const fs = require('fs');
const path = require('path');

const LIST = 'sources.txt';

// Returns {root, files, includes}, or undefined where there are none. The files are relative to the root.
function findCore(packageFolder) {
  const packed = path.join(packageFolder, 'core');
  if (fs.existsSync(path.join(packed, LIST))) {
    return core(packed, fs.readFileSync(path.join(packed, LIST), 'utf8'), ['src', 'include', 'third_party']);
  }
  const tree = path.resolve(packageFolder, '..', '..');
  const script = path.join(tree, 'tools', 'core_sources');
  if (!fs.existsSync(script)) return undefined;
  return core(tree, childProcess.execFileSync(script, { encoding: 'utf8' }), ['src', 'include']);
}

function core(root, list, includes) {
  return {
    root,
    files: list.split('\n').filter((line) => line !== ''),
    includes: includes.map((folder) => path.join(root, folder)),
  };
}

module.exports = { findCore };
