'use strict';
// http_load.js WAY MICROS: a web server whose requests are spans, under load from another process. Prints the server's
// CPU seconds, and with the profile written, as JSON.

const childProcess = require('child_process');
const http = require('http');
const { WAYS, spans } = require('./ways');

const REQUESTS = Number(process.env.SPANPROF_BENCH_HTTP_REQUESTS || 12000);
const CONNECTIONS = 32;

if (process.argv[2] === 'client') client(Number(process.argv[3]), Number(process.argv[4]));
else serve(WAYS[process.argv[2]], Number(process.argv[3]));

function client(port, requests) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let begun = 0;
  const next = () => {
    if (begun++ >= requests) return;
    http.get({ port, agent, path: `/items/${begun}` }, (response) => response.resume().on('end', next));
  };
  for (let i = 0; i < CONNECTIONS; ++i) next();
  process.on('exit', () => agent.destroy());
  const timer = setInterval(() => {
    if (begun >= requests + CONNECTIONS) {
      clearInterval(timer);
      agent.destroy();
    }
  }, 20);
}

const pause = () => new Promise((resolve) => setImmediate(resolve));

async function answer(index) {
  const items = Array.from({ length: 40 }, (_, item) => ({ item, name: `item ${item}`, price: Math.sqrt(index + item) }));
  await pause();
  const text = JSON.stringify(items);
  await undefined;
  return JSON.stringify(JSON.parse(text).map(({ price }) => price));
}

function loaded(port, requests) {
  return new Promise((resolve, reject) => {
    const child = childProcess.spawn(process.execPath, [__filename, 'client', String(port), String(requests)],
      { stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('exit', (status) => (status === 0 ? resolve() : reject(new Error(`the client ended with ${status}`))));
  });
}

function serve(way, micros) {
  const all = spans(1024);
  let index = 0;
  const server = http.createServer((request, response) => {
    way.run(all[++index & 1023], async () => response.end(await answer(index)));
  });
  const seconds = ({ user, system }) => (user + system) / 1e6;
  server.listen(0, async () => {
    way.start(micros);
    const { port } = server.address();
    await loaded(port, REQUESTS / 10);
    const began = process.cpuUsage();
    await loaded(port, REQUESTS);
    const used = seconds(process.cpuUsage(began));
    await way.stop();
    console.log(JSON.stringify({ used, written: seconds(process.cpuUsage(began)) }));
    server.close();
  });
}
