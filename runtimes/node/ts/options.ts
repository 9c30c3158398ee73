// The option string that every runtime understands, from values of JavaScript.

/** See docs/profiling.md for all of them; these are the usual ones. */
export interface StartOptions {
  /** Samples the time that passes, at this interval: '10ms'. */
  wall?: string;
  /** Samples CPU time: at the interval of wall with true, or at one of its own. */
  cpu?: string | boolean;
  /** Where the profile is written when the recording stops: 'profile.pb.gz'. %t, %p and %n are the time, the process
   * and a number. The format is that of the name. */
  file?: string;
  /** Where each profile is sent. */
  to?: string;
  /** A profile at this interval: '60s'. */
  every?: string;
  service?: string;
  version?: string;
  environment?: string;
  /** Names of tags that shall have the first positions. */
  attributes?: readonly string[];
  /** Whether places are told as source maps have them. They are, unless this is false. */
  sourcemaps?: boolean;
  [option: string]: unknown;
}

function escape(text: string): string {
  return text.replace(/[,;\\ ]/g, (character) => '\\' + character);
}

function words(name: string, value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'boolean') return [`${name}=${value ? 'on' : 'off'}`];
  if (Array.isArray(value)) return [`${name}=${value.map((item) => escape(String(item))).join(';')}`];
  if (typeof value === 'object') {
    // header and resource add up: one word for each entry.
    const sign = name === 'header' ? ':' : '=';
    return Object.entries(value).map(([key, item]) => `${name}=${escape(key)}${sign}${escape(String(item))}`);
  }
  return [`${name}=${escape(String(value))}`];
}

/** {wall: '10ms', cpu: true, file: 'a.pb.gz'} -> "wall=10ms,cpu=10ms,file=a.pb.gz" */
export function optionText(options: StartOptions): string {
  const { sourcemaps: _ours, cpu, ...rest } = options;
  const list = Object.entries(rest).flatMap(([name, value]) => words(name, value));
  if (cpu === true) list.push(`cpu=${escape(options.wall ?? '10ms')}`);
  else if (typeof cpu === 'string') list.push(`cpu=${escape(cpu)}`);
  return list.join(',');
}
