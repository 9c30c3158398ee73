// A source map's text to a table that positions can be looked up in. Maps are other people's files: whatever is
// wrong with one makes it a BrokenMap, and what it may take of memory is bounded.

export class BrokenMap extends Error {}
export class MapTooLarge extends Error {}

/** An original position: the source's index, line and column from 0, and the name's index or -1. */
export interface Segment {
  generatedColumn: number;
  source: number;
  line: number;
  column: number;
  name: number;
}

interface PlainMap {
  mappings: string;
  sources: string[];
  names: string[];
}

// Generated line and column, source, line, column, name.
const STRIDE = 6;
const NONE = -1;
const LARGEST = 0x7fffffff;

const DIGITS = new Int8Array(128).fill(NONE);
[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].forEach((digit, value) => {
  DIGITS[digit.charCodeAt(0)] = value;
});

export class DecodedMap {
  readonly sources: string[] = [];
  readonly names: string[] = [];
  private words = new Int32Array(STRIDE * 256);
  private count = 0;
  private sorted = true;

  /** Throws BrokenMap or MapTooLarge. */
  constructor(
    text: string,
    private readonly largestBytes: number,
  ) {
    // Some servers put this before JSON, so that it is not taken for a script.
    const json = text.startsWith(")]}'") ? text.slice(text.indexOf('\n') + 1) : text;
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      throw new BrokenMap('it is not JSON');
    }
    const map = objectOf(value);
    if (map['version'] !== 3) throw new BrokenMap('its version is not 3');
    if (map['sections'] !== undefined) this.addSections(map['sections']);
    else this.add(plainMapOf(map), 0, 0);
    if (!this.sorted) this.sort();
    this.words = this.words.slice(0, this.count * STRIDE);
  }

  get bytes(): number {
    let texts = 0;
    for (const text of this.sources) texts += text.length + 16;
    for (const text of this.names) texts += text.length + 16;
    return this.words.byteLength + texts;
  }

  /** The last segment of the line at or before the column, both from 0, if it has a source. */
  find(line: number, column: number): Segment | undefined {
    const index = this.lastNotAfter(line, column);
    return index >= 0 && this.word(index, 0) === line ? this.segment(index) : undefined;
  }

  /** The first segment of the line that has a source. */
  firstOfLine(line: number): Segment | undefined {
    for (let i = this.lastNotAfter(line, -1) + 1; i < this.count && this.word(i, 0) === line; ++i) {
      const segment = this.segment(i);
      if (segment !== undefined) return segment;
    }
    return undefined;
  }

  private word(index: number, field: number): number {
    return this.words[index * STRIDE + field] ?? NONE;
  }

  private segment(index: number): Segment | undefined {
    const source = this.word(index, 2);
    if (source === NONE) return undefined;
    return {
      generatedColumn: this.word(index, 1),
      source,
      line: this.word(index, 3),
      column: this.word(index, 4),
      name: this.word(index, 5),
    };
  }

  private lastNotAfter(line: number, column: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.word(middle, 0);
      if (at < line || (at === line && this.word(middle, 1) <= column)) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // An index map: each section is a map of its own, for what follows its offset until the next one's.
  private addSections(value: unknown): void {
    if (!Array.isArray(value)) throw new BrokenMap('its sections are not a list');
    let lastLine = -1;
    let lastColumn = 0;
    for (const item of value as unknown[]) {
      const section = objectOf(item);
      const offset = objectOf(section['offset']);
      const line = positionOf(offset['line']);
      const column = positionOf(offset['column']);
      if (line < lastLine || (line === lastLine && column < lastColumn)) {
        throw new BrokenMap('its sections are not in order');
      }
      lastLine = line;
      lastColumn = column;
      if (this.sorted === false) this.sort();
      while (this.count > 0 && this.isNotBefore(this.count - 1, line, column)) --this.count;
      this.push(line, column, NONE, NONE, NONE, NONE);
      this.add(plainMapOf(objectOf(section['map'])), line, column);
    }
  }

  private isNotBefore(index: number, line: number, column: number): boolean {
    const at = this.word(index, 0);
    return at > line || (at === line && this.word(index, 1) >= column);
  }

  private add(map: PlainMap, firstLine: number, firstColumn: number): void {
    const sourceBase = this.sources.length;
    const nameBase = this.names.length;
    for (const source of map.sources) this.sources.push(source);
    for (const name of map.names) this.names.push(name);
    const text = map.mappings;
    const fields = [0, 0, 0, 0, 0]; // Running: generated column, source, line, column, name.
    let line = firstLine;
    let offset = firstColumn;
    let given = 0; // Fields of the segment so far.
    const finish = (): void => {
      if (given === 0) return;
      if (given !== 1 && given !== 4 && given !== 5) throw new BrokenMap(`a segment has ${given} fields`);
      const [column = 0, source = 0, sourceLine = 0, sourceColumn = 0, name = 0] = fields;
      if (column < 0 || sourceLine < 0 || sourceColumn < 0) throw new BrokenMap('a position is negative');
      if (given > 1 && (source < 0 || source >= map.sources.length)) throw new BrokenMap(`there is no source ${source}`);
      if (given > 4 && (name < 0 || name >= map.names.length)) throw new BrokenMap(`there is no name ${name}`);
      if (column + offset > LARGEST) throw new BrokenMap('a column is too large');
      this.push(
        line,
        column + offset,
        given > 1 ? sourceBase + source : NONE,
        given > 1 ? sourceLine : NONE,
        given > 1 ? sourceColumn : NONE,
        given > 4 ? nameBase + name : NONE,
      );
      given = 0;
    };
    for (let i = 0; i < text.length; ) {
      const code = text.charCodeAt(i);
      if (code === COMMA) {
        finish();
        ++i;
      } else if (code === SEMICOLON) {
        finish();
        fields[0] = 0;
        offset = 0;
        if (++line > LARGEST) throw new BrokenMap('it has too many lines');
        ++i;
      } else {
        if (given === 5) throw new BrokenMap('a segment has more than 5 fields');
        i = addNumber(text, i, fields, given++);
      }
    }
    finish();
  }

  private push(line: number, column: number, source: number, sourceLine: number, sourceColumn: number, name: number): void {
    const at = this.count * STRIDE;
    if (at + STRIDE > this.words.length) this.grow();
    if (this.count > 0 && this.sorted && this.word(this.count - 1, 0) === line) {
      this.sorted = this.word(this.count - 1, 1) <= column;
    }
    this.words[at] = line;
    this.words[at + 1] = column;
    this.words[at + 2] = source;
    this.words[at + 3] = sourceLine;
    this.words[at + 4] = sourceColumn;
    this.words[at + 5] = name;
    ++this.count;
  }

  private grow(): void {
    const length = this.words.length * 2;
    if (length * 4 > this.largestBytes) throw new MapTooLarge(`it has more than ${this.count} segments`);
    const larger = new Int32Array(length);
    larger.set(this.words);
    this.words = larger;
  }

  // Segments of a line may stand in any order.
  private sort(): void {
    const order = Array.from({ length: this.count }, (_, index) => index);
    order.sort((a, b) => this.word(a, 0) - this.word(b, 0) || this.word(a, 1) - this.word(b, 1) || a - b);
    const words = new Int32Array(this.words.length);
    order.forEach((from, to) => words.set(this.words.subarray(from * STRIDE, (from + 1) * STRIDE), to * STRIDE));
    this.words = words;
    this.sorted = true;
  }
}

const COMMA = 44;
const SEMICOLON = 59;

// Adds a number in base-64 digits of five bits, the lowest first and the sign in its lowest bit, to a field.
// Returns where the next one begins.
function addNumber(text: string, start: number, fields: number[], field: number): number {
  let value = 0;
  let i = start;
  for (let shift = 0; ; shift += 5) {
    const digit = DIGITS[text.charCodeAt(i++)] ?? NONE;
    if (digit === NONE) throw new BrokenMap('its mappings have a character that is no digit, or end too early');
    // A number of 32 bits has seven digits.
    if (shift > 30) throw new BrokenMap('a number is too large');
    value += (digit & 31) * 2 ** shift;
    if ((digit & 32) === 0) break;
  }
  const magnitude = Math.floor(value / 2);
  const sum = (fields[field] ?? 0) + (value % 2 === 1 ? -magnitude : magnitude);
  if (sum > LARGEST || sum < -LARGEST) throw new BrokenMap('a number is too large');
  fields[field] = sum;
  return i;
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new BrokenMap('a part is not an object');
  return value as Record<string, unknown>;
}

function positionOf(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > LARGEST) {
    throw new BrokenMap('a section has no offset');
  }
  return value;
}

function textsOf(value: unknown, what: string): string[] {
  if (!Array.isArray(value)) throw new BrokenMap(`its ${what} are not a list`);
  return (value as unknown[]).map((item) => {
    if (item === null) return ''; // A source that nobody may name.
    if (typeof item !== 'string') throw new BrokenMap(`one of its ${what} is not a text`);
    return item;
  });
}

function plainMapOf(map: Record<string, unknown>): PlainMap {
  const mappings = map['mappings'];
  if (typeof mappings !== 'string') throw new BrokenMap('it has no mappings');
  const root = map['sourceRoot'];
  if (root !== undefined && root !== null && typeof root !== 'string') throw new BrokenMap('its sourceRoot is not a text');
  const prefix = root ? root.replace(/\/?$/, '/') : '';
  return {
    mappings,
    sources: textsOf(map['sources'], 'sources').map((source) => (source === '' ? '' : prefix + source)),
    names: map['names'] === undefined ? [] : textsOf(map['names'], 'names'),
  };
}
