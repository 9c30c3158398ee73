'use strict';
// Which addon belongs to the running Node.js: FOLDER/linux-x64-glibc/137.node. The installation asks here, and so
// does the package when it is loaded.

const fs = require('fs');
const path = require('path');

// 'glibc', 'musl' or undefined: whichever this process has loaded.
function libc() {
  if (process.platform !== 'linux') return undefined;
  try {
    const maps = fs.readFileSync('/proc/self/maps', 'utf8');
    if (/\/ld-musl-/.test(maps)) return 'musl';
    return /\/libc(\.so\.6|-2\.\d+\.so)$/m.test(maps) ? 'glibc' : undefined;
  } catch (error) {
    return undefined;
  }
}

function platformName() {
  return [process.platform, process.arch, libc()].filter((word) => word !== undefined).join('-');
}

function addonPath(folder) {
  return path.join(folder, platformName(), `${process.versions.modules}.node`);
}

module.exports = { addonPath, libc, platformName };
