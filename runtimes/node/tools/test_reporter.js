'use strict';
// For node --test: says each test's result, and ends with a line that ./dev can count by:
// "N passed, N failed, N skipped".

const SUMMARY = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

module.exports = async function* report(events) {
  let passed = 0;
  const failed = [];
  const skipped = [];
  for await (const { type, data } of events) {
    if (type === 'test:stdout' || type === 'test:stderr') yield data.message;
    if (type === 'test:diagnostic' && !SUMMARY.test(data.message)) yield `# ${data.message}\n`;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A suite is counted by its tests, a file by them too, unless it fell over before there were any.
    const isSuite = data.details && data.details.type === 'suite';
    const isFile = data.file !== undefined && data.name === data.file;
    if ((isSuite || isFile) && type === 'test:pass') continue;
    if (data.details && data.details.error && data.details.error.failureType === 'subtestsFailed') continue;
    if (type === 'test:fail' && data.todo === undefined) {
      failed.push(data.name);
      yield `not ok ${data.name}\n${describe(data.details)}\n`;
    } else if (data.skip !== undefined && data.skip !== false) {
      skipped.push(`${data.name}: ${data.skip === true || data.skip === '' ? 'no reason given' : data.skip}`);
    } else {
      ++passed;
      yield `ok ${data.name} (${Math.round(data.details.duration_ms)} ms)\n`;
    }
  }
  for (const name of failed) yield `FAILED ${name}\n`;
  for (const reason of skipped) yield `skipped ${reason}\n`;
  yield `${passed} passed, ${failed.length} failed, ${skipped.length} skipped\n`;
};

function describe(details) {
  const error = details && details.error;
  if (!error) return '';
  const cause = error.cause || error;
  return String(cause.stack || cause.message || cause);
}
