// From positions in what a compiler wrote to those in what people wrote.
//
//   const maps = new SourceMaps();
//   maps.map('/app/dist/cart.js', 12, 8, 't')  ->  {file: '/app/src/cart.ts', line: 40, column: 3, name: 'total'}
//
// Files are read when they are first asked for, synchronously: this is for the writing of profiles, not for sampling.

import { fileURLToPath } from 'url';
import type { SourcePosition } from './binding';
import { BrokenMap, DecodedMap, MapTooLarge, type Segment } from './source_map_decoding';
import { fileOfScript, findMap, NoMap, RemoteMap } from './source_map_files';

export interface SourceMapLimits {
  /** Scripts whose map, or lack of one, is remembered. */
  scripts: number;
  /** Of one file, and of all tables and scripts that are kept. */
  bytes: number;
}

interface KnownScript {
  script: string;
  lines: Int32Array | undefined;
  map: DecodedMap;
  files: (string | undefined)[];
  base: URL;
  bytes: number;
}

const LIMITS: SourceMapLimits = { scripts: 4096, bytes: 64 << 20 };
// How far before a function's position its name is looked for.
const NAME_DISTANCE = 200;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
const IDENTIFIER_PART = /[\p{ID_Continue}$\u200c\u200d]/u;

export class SourceMaps {
  private readonly limits: SourceMapLimits;
  // In the order of use, the oldest first. Undefined: there is no map.
  private readonly known = new Map<string, KnownScript | undefined>();
  private keptBytes = 0;
  private readonly counts = { read: 0, none: 0, broken: 0, too_large: 0, remote: 0, forgotten: 0 };

  constructor(limits: Partial<SourceMapLimits> = {}) {
    this.limits = { ...LIMITS, ...limits };
  }

  /**
   * Lines and columns are from 1, as V8 counts them; column 0 is "not known". The name is the function's, as the
   * running code has it. Undefined: there is no map, or it says nothing of this position.
   */
  map(url: string, line: number, column: number, name: string): SourcePosition | undefined {
    if (line < 1) return undefined;
    const script = this.scriptOf(url);
    if (script === undefined) return undefined;
    const segment = column < 1 ? script.map.firstOfLine(line - 1) : script.map.find(line - 1, column - 1);
    if (segment === undefined) return undefined;
    const file = fileOf(script, segment);
    if (file === undefined) return undefined;
    return {
      file,
      line: segment.line + 1,
      column: segment.column + 1,
      name: column < 1 ? name : originalName(script, line - 1, column - 1, name),
    };
  }

  /** What was found, and what was given up, by reason. */
  counters(): Record<string, number> {
    return Object.fromEntries(Object.entries(this.counts).map(([name, count]) => [`source_maps.${name}`, count]));
  }

  private scriptOf(url: string): KnownScript | undefined {
    if (this.known.has(url)) {
      const script = this.known.get(url);
      this.known.delete(url);
      this.known.set(url, script);
      return script;
    }
    const script = this.read(url);
    this.known.set(url, script);
    this.keptBytes += script?.bytes ?? 0;
    this.forgetOldest();
    return script;
  }

  private forgetOldest(): void {
    for (const [url, script] of this.known) {
      if (this.known.size <= this.limits.scripts && this.keptBytes <= this.limits.bytes) return;
      this.known.delete(url);
      this.keptBytes -= script?.bytes ?? 0;
      ++this.counts.forgotten;
    }
  }

  private read(url: string): KnownScript | undefined {
    const file = fileOfScript(url);
    if (file === undefined) return undefined;
    try {
      const found = findMap(file, this.limits.bytes);
      const map = new DecodedMap(found.text, this.limits.bytes);
      const bytes = map.bytes + found.script.length * 2;
      if (bytes > this.limits.bytes) throw new MapTooLarge(`it would take ${bytes} bytes`);
      ++this.counts.read;
      return {
        script: found.script,
        lines: undefined,
        map,
        files: new Array<string | undefined>(map.sources.length),
        base: found.base,
        bytes,
      };
    } catch (error) {
      ++this.counts[reasonOf(error)];
      return undefined;
    }
  }
}

function reasonOf(error: unknown): 'none' | 'broken' | 'too_large' | 'remote' {
  if (error instanceof NoMap) return 'none';
  if (error instanceof RemoteMap) return 'remote';
  if (error instanceof MapTooLarge || error instanceof RangeError) return 'too_large';
  if (error instanceof BrokenMap) return 'broken';
  return 'broken';
}

function fileOf(script: KnownScript, segment: Segment): string | undefined {
  const known = script.files[segment.source];
  if (known !== undefined) return known;
  const source = script.map.sources[segment.source];
  if (!source) return undefined;
  const file = resolveSource(source, script.base);
  script.files[segment.source] = file;
  return file;
}

// Bundlers name sources by schemes of their own ("webpack:///./src/cart.ts"), which stay as they are.
function resolveSource(source: string, base: URL): string {
  if (/^[a-zA-Z][a-zA-Z0-9+.-]+:/.test(source) && !source.startsWith('file:')) return source;
  try {
    return fileURLToPath(new URL(source, base));
  } catch {
    return source;
  }
}

// A map names the identifiers that the compiler renamed. V8's position of a function is that of its parameters, so
// the function's own name stands before it ("function t(e)", "t=e=>"): it is looked for in the script, and its
// segment asked. A method, or a name that was not changed, has no other.
function originalName(script: KnownScript, line: number, column: number, name: string): string {
  if (!IDENTIFIER.test(name)) return name;
  const start = startOfLine(script, line);
  if (start === undefined) return name;
  const from = start + Math.max(0, column - NAME_DISTANCE);
  const text = script.script.slice(from, start + column + name.length);
  for (let at = text.lastIndexOf(name); at >= 0; at = at > 0 ? text.lastIndexOf(name, at - 1) : -1) {
    const before = text[at - 1];
    const after = script.script[from + at + name.length];
    if ((before && IDENTIFIER_PART.test(before)) || (after && IDENTIFIER_PART.test(after))) continue;
    const generatedColumn = from + at - start;
    const segment = script.map.find(line, generatedColumn);
    if (segment === undefined || segment.generatedColumn !== generatedColumn) continue;
    return segment.name >= 0 ? (script.map.names[segment.name] ?? name) : name;
  }
  return name;
}

function startOfLine(script: KnownScript, line: number): number | undefined {
  if (script.lines === undefined) {
    const starts = [0];
    for (const found of script.script.matchAll(/\r\n|[\n\r\u2028\u2029]/g)) starts.push(found.index + found[0].length);
    script.lines = Int32Array.from(starts);
  }
  return script.lines[line];
}
