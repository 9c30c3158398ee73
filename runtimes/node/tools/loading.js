'use strict';
// Whether a file is an addon that the running Node.js can load.

const childProcess = require('child_process');

// In a process of its own: what does not belong here may do more than fail. Undefined: it loads.
function reasonAgainstLoading(file) {
  const program = 'require(process.argv[1])';
  const answer = childProcess.spawnSync(process.execPath, ['-e', program, file],
    { encoding: 'utf8', timeout: 60000, env: Object.assign({}, process.env, { NODE_OPTIONS: '' }) });
  if (answer.status === 0) return undefined;
  if (answer.error) return answer.error.message;
  if (answer.signal) return `the process was ended by ${answer.signal}`;
  const line = answer.stderr.split('\n').find((text) => /Error/.test(text)) || `exit status ${answer.status}`;
  return line.trim().slice(0, 300);
}

module.exports = { reasonAgainstLoading };
