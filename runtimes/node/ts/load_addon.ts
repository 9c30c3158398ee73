// Finds and loads the addon for the running Node.js: one that was compiled when the package was installed, or a
// prebuilt one. Never throws: without an addon the package does nothing, and says why.

import * as fs from 'fs';
import * as path from 'path';

export interface LoadedAddon {
  /** What the addon exports. Undefined: there is none. */
  binding?: unknown;
  /** The file it was loaded from. */
  file?: string;
  /** Why there is none, as a sentence for people. */
  reason?: string;
}

interface Platform {
  addonPath(folder: string): string;
  platformName(): string;
}

const PACKAGE = path.resolve(__dirname, '..');
// Plain JavaScript that the installation uses too, before anything is known of the Node.js that it runs in.
const platform = require('../tools/platform.js') as Platform;

export function loadAddon(environment: NodeJS.ProcessEnv = process.env): LoadedAddon {
  const named = environment['SPANPROF_NODE_ADDON'];
  if (named) return load(path.resolve(named));
  const missing = reasonOfInstallation();
  if (missing !== undefined) return { reason: missing };
  const problems: string[] = [];
  for (const folder of ['native', 'prebuilds']) {
    const file = platform.addonPath(path.join(PACKAGE, folder));
    if (!fs.existsSync(file)) continue;
    const loaded = load(file);
    if (loaded.binding !== undefined) return loaded;
    problems.push(loaded.reason ?? '');
  }
  if (problems.length > 0) return { reason: problems.join('; ') };
  return {
    reason:
      `there is no addon for ${platform.platformName()} with ABI ${process.versions.modules} ` +
      `(Node.js ${process.versions.node}): install the package again with this Node.js, and with install scripts`,
  };
}

function load(file: string): LoadedAddon {
  try {
    return { binding: require(file) as unknown, file };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { reason: `the addon cannot be loaded: ${message.split('\n')[0] ?? ''}` };
  }
}

// What install.js left, unless it was for another Node.js than this.
function reasonOfInstallation(): string | undefined {
  try {
    const text = fs.readFileSync(path.join(PACKAGE, 'native', 'missing.json'), 'utf8');
    const { reason, node } = JSON.parse(text) as { reason: unknown; node: unknown };
    return node === 'any' || node === process.versions.modules ? String(reason) : undefined;
  } catch {
    return undefined;
  }
}
