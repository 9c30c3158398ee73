// Finds the source map of a script's file: named by the comment at its end, inside that comment, or beside it.

import * as fs from 'fs';
import * as path from 'path';
import { fileURLToPath, pathToFileURL } from 'url';
import { BrokenMap, MapTooLarge } from './source_map_decoding';

/** Not there, or not to be read: no fault of the map's. */
export class NoMap extends Error {}
/** It is elsewhere, and we fetch nothing. */
export class RemoteMap extends Error {}

export interface FoundMap {
  /** The script. */
  script: string;
  /** The map's JSON. */
  text: string;
  /** What its sources are relative to. */
  base: URL;
}

/** The file of a script's URL, or undefined: it is Node.js's own, evaluated, or from elsewhere. */
export function fileOfScript(url: string): string | undefined {
  if (url.startsWith('file://')) {
    try {
      return fileURLToPath(url);
    } catch {
      return undefined;
    }
  }
  return path.isAbsolute(url) ? url : undefined;
}

/** Throws NoMap, RemoteMap, BrokenMap or MapTooLarge. */
export function findMap(file: string, largestBytes: number): FoundMap {
  const script = readText(file, largestBytes);
  const scriptUrl = pathToFileURL(file);
  const named = mapUrlOf(script);
  if (named === undefined) {
    // Some compilers write a map and do not name it.
    const base = pathToFileURL(`${file}.map`);
    return { script, text: readText(`${file}.map`, largestBytes), base };
  }
  if (named.startsWith('data:')) return { script, text: textOfDataUrl(named), base: scriptUrl };
  let url: URL;
  try {
    url = new URL(named, scriptUrl);
  } catch {
    throw new BrokenMap(`'${named.slice(0, 100)}' is no URL`);
  }
  if (url.protocol !== 'file:') throw new RemoteMap(`it is at ${url.protocol}`);
  let mapFile: string;
  try {
    mapFile = fileURLToPath(url);
  } catch {
    throw new BrokenMap(`'${named.slice(0, 100)}' is no file`);
  }
  return { script, text: readText(mapFile, largestBytes), base: url };
}

// The comment counts only where nothing but comments follows: code may have such a text in it.
function mapUrlOf(script: string): string | undefined {
  const at = script.lastIndexOf('sourceMappingURL=');
  if (at < 3) return undefined;
  const opening = script.slice(Math.max(0, at - 4), at);
  if (!/(\/\/|\/\*)[#@][ \t]$/.test(opening)) return undefined;
  const end = script.slice(at).search(/[\r\n\u2028\u2029]/);
  const line = end < 0 ? script.slice(at) : script.slice(at, at + end);
  const rest = end < 0 ? '' : script.slice(at + end);
  if (!rest.split(/[\r\n\u2028\u2029]/).every((text) => /^\s*($|\/\/)/.test(text))) return undefined;
  const url = /^sourceMappingURL=([^\s'"*]+)/.exec(line);
  return url?.[1];
}

function textOfDataUrl(url: string): string {
  const comma = url.indexOf(',');
  if (comma < 0) throw new BrokenMap('its data: URL has no comma');
  const kind = url.slice(0, comma);
  const data = url.slice(comma + 1);
  if (kind.endsWith(';base64')) return Buffer.from(data, 'base64').toString('utf8');
  try {
    return decodeURIComponent(data);
  } catch {
    throw new BrokenMap('its data: URL is not well encoded');
  }
}

// A script's name may be anything that its program chose, so it is opened without waiting, and read only if it is a
// plain file.
function readText(file: string, largestBytes: number): string {
  let descriptor: number;
  try {
    descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY);
  } catch (error) {
    throw new NoMap(error instanceof Error ? error.message : 'it cannot be opened');
  }
  try {
    const status = fs.fstatSync(descriptor);
    if (!status.isFile()) throw new NoMap(`${file} is not a plain file`);
    if (status.size > largestBytes) throw new MapTooLarge(`${file} has ${status.size} bytes`);
    const bytes = Buffer.allocUnsafe(status.size);
    let length = 0;
    while (length < bytes.length) {
      const got = fs.readSync(descriptor, bytes, length, bytes.length - length, null);
      if (got === 0) break;
      length += got;
    }
    return bytes.toString('utf8', 0, length);
  } catch (error) {
    if (error instanceof NoMap || error instanceof MapTooLarge) throw error;
    throw new NoMap(error instanceof Error ? error.message : 'it cannot be read');
  } finally {
    fs.closeSync(descriptor);
  }
}
