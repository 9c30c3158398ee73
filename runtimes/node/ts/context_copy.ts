// A context as it was when it was given, for where nothing outside the process can read one: an object of JavaScript,
// which the addon reads when samples are taken over. That is several times cheaper than a record of the addon's.

import { tagList } from './sample_context';
import type { SampleContext } from './sample_context';

const TRACE_ID_DIGITS = 32;
const SPAN_ID_DIGITS = 16;

const IS_DIGIT = new Uint8Array(128);
for (const digit of '0123456789abcdefABCDEF') IS_DIGIT[digit.charCodeAt(0)] = 1;

function isHexadecimal(text: unknown, digits: number): boolean {
  if (typeof text !== 'string' || text.length > digits) return false;
  for (let i = 0; i < text.length; ++i) {
    if (IS_DIGIT[text.charCodeAt(i)] !== 1) return false;
  }
  return true;
}

// Most of what is set in a row has the same root.
let lastRootSpanId: string | bigint = '';

function checkSpanId(id: unknown, name: string): void {
  if (typeof id !== 'bigint' && !isHexadecimal(id, SPAN_ID_DIGITS)) {
    throw new Error(`${name} is not 16 hexadecimal digits`);
  }
}

// The addon knows it by its prototype, and its fields by their names.
export class ContextCopy {
  declare readonly traceId: string | undefined;
  declare readonly spanId: string | bigint | undefined;
  declare readonly rootSpanId: string | bigint | undefined;
  declare readonly endpoint: string | undefined;
  declare readonly tags: ReadonlyArray<string> | undefined;

  constructor({ traceId, spanId, rootSpanId, endpoint, tags }: SampleContext) {
    if (traceId !== undefined && !isHexadecimal(traceId, TRACE_ID_DIGITS)) {
      throw new Error('traceId is not 32 hexadecimal digits');
    }
    if (spanId !== undefined) checkSpanId(spanId, 'spanId');
    if (rootSpanId !== undefined && rootSpanId !== lastRootSpanId) {
      checkSpanId(rootSpanId, 'rootSpanId');
      lastRootSpanId = rootSpanId;
    }
    this.traceId = traceId;
    this.spanId = spanId;
    this.rootSpanId = rootSpanId;
    this.endpoint = typeof endpoint === 'string' ? endpoint : undefined;
    this.tags = tagList(tags);
  }
}

export function copyOf(context: SampleContext | undefined): ContextCopy | undefined {
  return context === undefined || context === null ? undefined : new ContextCopy(context);
}
