'use strict';
// Work that takes time, and whose name stays in the stack.

function burnFor(milliseconds) {
  const end = process.hrtime.bigint() + BigInt(milliseconds) * 1000000n;
  const began = process.cpuUsage();
  // On a machine that has no time for us, so much has to be burned that there is something to sample.
  const starved = () => {
    const { user, system } = process.cpuUsage(began);
    return user + system < milliseconds * 500;
  };
  let sum = 0;
  while (process.hrtime.bigint() < end || starved()) for (let i = 0; i < 2000; ++i) sum += Math.sqrt(i);
  return sum;
}

// A function of that name, that burns.
function named(name) {
  return new Function('burnFor', `return function ${name}(milliseconds) { return burnFor(milliseconds); }`)(burnFor);
}

module.exports = { burnFor, named };
