'use strict';
// Spans of the real OpenTelemetry SDK on samples, with no change to the program.
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { BURN, linkPackage, runProgram } = require('./child_program');
const { readSamples } = require('./read_profile');

const RECORD = { environment: { SPANPROF: 'cpu=1ms,wall=1ms,file=profile.pb.gz' } };

async function recorded(text, options = {}) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'spanprof-opentelemetry-')));
  try {
    linkPackage(folder);
    const ended = await runProgram(folder, text, { ...RECORD, options: ['-r', 'spanprof/auto'], ...options });
    assert.strictEqual(ended.status, 0, ended.stderr);
    return { samples: readSamples(path.join(folder, 'profile.pb.gz')), told: JSON.parse(ended.stdout), errors: ended.stderr };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

const SET_UP = `
  const { context, trace, SpanKind, ROOT_CONTEXT } = require('@opentelemetry/api');
  const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
  ${BURN}
`;

// Eight requests at once, each a server's span with a child. Every one burns in functions of its own names, across
// awaits and timers, and tells which span each function belongs to.
const REQUESTS = `
  const tracer = () => trace.getTracer('test');
  const spans = {};
  const pause = () => new Promise((resolve) => setTimeout(resolve, 1));
  function named(name, span) {
    const { traceId, spanId } = span.spanContext();
    spans[name] = { traceId, spanId };
    // V8 knows a function by its source: one for each name.
    return new Function('burnFor', 'return function ' + name + '() { return burnFor(4); };')(burnFor);
  }
  async function request(number) {
    await tracer().startActiveSpan('GET', { kind: SpanKind.SERVER }, async (root) => {
      const rootFunction = named('rootOf' + number, root);
      spans['rootOf' + number].rootSpanId = root.spanContext().spanId;
      for (let i = 0; i < 6; ++i) {
        rootFunction();
        await pause();
        await tracer().startActiveSpan('query', async (child) => {
          const name = 'childOf' + number + 'x' + i;
          const childFunction = named(name, child);
          spans[name].rootSpanId = root.spanContext().spanId;
          childFunction();
          await null;
          childFunction();
          await pause();
          childFunction();
          child.end();
        });
      }
      root.setAttribute('http.request.method', 'GET');
      root.setAttribute('http.route', '/route/' + number);
      root.end();
    });
  }
  Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(request)).then(() => console.log(JSON.stringify(spans)));
`;

// Each sample of a function has the span that the program told for it.
function checkSpans({ samples, told }, { roots }) {
  let right = 0;
  let missing = 0;
  for (const { functions, labels } of samples) {
    const name = functions.find((item) => Object.hasOwn(told, item));
    if (name === undefined) continue;
    if (labels.span_id === undefined) {
      ++missing;
      continue;
    }
    const { traceId, spanId, rootSpanId } = told[name];
    assert.strictEqual(labels.span_id, spanId, name);
    assert.strictEqual(labels.trace_id, traceId, name);
    if (roots) {
      assert.strictEqual(labels.local_root_span_id, rootSpanId, name);
      assert.strictEqual(labels.endpoint, `GET /route/${/Of(\d)/.exec(name)[1]}`, name);
    }
    ++right;
  }
  assert.ok(right > 100, `${right} samples with a span, ${missing} without`);
  assert.ok(missing * 20 <= right, `${right} samples with a span, ${missing} without`);
}

const REGISTER = 'new NodeTracerProvider().register();';

test('OpenTelemetry that is set up after us', async () => {
  checkSpans(await recorded(`${SET_UP} ${REGISTER} ${REQUESTS}`), { roots: true });
});

test('OpenTelemetry that was set up before us', async () => {
  checkSpans(await recorded(`${SET_UP} ${REGISTER} require('spanprof/auto'); ${REQUESTS}`, { options: [] }), { roots: true });
});

test('a tracer that was taken before OpenTelemetry was set up', async () => {
  const early = "const early = trace.getTracer('early'); trace.getTracer = () => early;";
  checkSpans(await recorded(`${SET_UP} ${early} ${REGISTER} ${REQUESTS}`), { roots: true });
});

test('a context manager without a storage is refused with the reason', async () => {
  const { errors, told } = await recorded(`${SET_UP}
    class StackManager { active() { return ROOT_CONTEXT; } with(_, fn) { return fn(); } bind(_, fn) { return fn; } enable() { return this; } disable() { return this; } }
    context.setGlobalContextManager(new StackManager());
    burnFor(50);
    console.log(JSON.stringify(require('spanprof/opentelemetry').followState()));
  `);
  assert.strictEqual(told.spans, 'refused');
  assert.match(errors, /StackManager has no AsyncLocalStorage/);
});

test('for OpenTelemetry nothing has changed', async () => {
  const { told } = await recorded(`${SET_UP}
    const provider = new NodeTracerProvider();
    provider.register();
    const answers = {};
    answers.duplicate = trace.setGlobalTracerProvider(new NodeTracerProvider());
    answers.keys = Object.keys(globalThis[Symbol.for('opentelemetry.js.api.1')]).sort();
    trace.disable();
    context.disable();
    answers.after = Object.keys(globalThis[Symbol.for('opentelemetry.js.api.1')]).sort();
    answers.again = trace.setGlobalTracerProvider(new NodeTracerProvider());
    burnFor(20);
    console.log(JSON.stringify(answers));
  `);
  assert.deepStrictEqual(told,
    { duplicate: false, keys: ['context', 'propagation', 'trace', 'version'], after: ['propagation', 'version'], again: true });
});

test('the part of describing a context that needs no profiler', () => {
  const { describeContext } = require('../../dist/opentelemetry');
  const key = Symbol.for('OpenTelemetry Context Key SPAN');
  const holding = (span) => ({ getValue: (asked) => (asked === key ? span : undefined) });
  assert.strictEqual(describeContext(undefined), undefined);
  assert.strictEqual(describeContext({}), undefined);
  assert.strictEqual(describeContext(holding(undefined)), undefined);
  const span = { spanContext: () => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16) }) };
  assert.deepStrictEqual(describeContext(holding(span)), { traceId: '1'.repeat(32), spanId: '2'.repeat(16) });
  const none = { spanContext: () => ({ traceId: '0'.repeat(32), spanId: '0'.repeat(16) }) };
  assert.strictEqual(describeContext(holding(none)), undefined);
});
