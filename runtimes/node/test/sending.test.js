'use strict';
// Profiles that are sent to a server, which here is one of Node.js's own.

const assert = require('node:assert');
const http = require('node:http');
const test = require('node:test');
const zlib = require('node:zlib');
const { of, total } = require('./checked_profile');
const { assertEndedWell, newFolder, runText } = require('./child_process');
const fs = require('node:fs');
const path = require('node:path');

// Answers with `status(number of the request)`, and resolves `work`'s result with what came: [{path, headers, body}].
async function withServer(status, work) {
  const received = [];
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      received.push({ path: request.url, headers: request.headers, body: Buffer.concat(parts) });
      response.writeHead(status(received.length)).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const ended = await work(`127.0.0.1:${server.address().port}`);
    return { ended, received };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const recordInto = (to, more = {}) => runText(`
  (async () => {
    spanprof.start({wall: '1ms', to: ${JSON.stringify(to)}, service: 'shop', ...${JSON.stringify(more)}});
    spanprof.runWithContext({spanId: 'abc1', rootSpanId: 'abc1', endpoint: 'GET /cart'}, named('sent_away'), 300);
    await spanprof.stop();
    process.stdout.write(JSON.stringify(spanprof.status().counters));
  })();
`);

test('a profile is sent as pprof, with its contexts', async () => {
  const { ended, received } = await withServer(() => 200, (server) => recordInto(`pprof+http://${server}/profiles`));
  assertEndedWell(ended);
  assert.strictEqual(received.length, 1);
  const file = path.join(newFolder(), 'received.pb.gz');
  fs.writeFileSync(file, received[0].body);
  const samples = of(ended.samplesOf(file), 'sent_away');
  assert.ok(total(samples) > 0);
  assert.ok(samples.every(({ labels }) => labels.span_id === '000000000000abc1' && labels.endpoint === 'GET /cart'));
});

test('and as OTLP, where the collector looks for it', async () => {
  const { ended, received } = await withServer(() => 200, (server) => recordInto(`otlp+http://${server}`, { header: 'X-Tenant:blue' }));
  assertEndedWell(ended);
  assert.strictEqual(received.length, 1);
  const [{ path: url, headers, body }] = received;
  assert.match(url, /^\/v1development\/profiles$/);
  assert.strictEqual(headers['content-type'], 'application/x-protobuf');
  assert.strictEqual(headers['x-tenant'], 'blue');
  const plain = headers['content-encoding'] === 'gzip' ? zlib.gunzipSync(body) : body;
  for (const text of ['sent_away', 'shop', 'GET /cart']) assert.ok(plain.includes(text), text);
});

test('a server that is busy is asked again', async () => {
  const { ended, received } = await withServer((number) => (number === 1 ? 503 : 200), (server) => recordInto(`pprof+http://${server}/`));
  assertEndedWell(ended);
  assert.strictEqual(received.length, 2);
  assert.deepStrictEqual(received[0].body, received[1].body);
});

test('one that is not there is told of when the recording stops', async () => {
  const ended = await runText(`
    (async () => {
      spanprof.start({wall: '1ms', to: 'pprof+http://127.0.0.1:1/'});
      named('not_sent')(100);
      await spanprof.stop().then(() => process.stdout.write('sent'), (error) => process.stdout.write(error.message));
    })();
  `);
  assertEndedWell(ended);
  assert.match(ended.stdout, /was not sent: '127\.0\.0\.1' port 1: cannot connect/);
});
