// Loads the native addons, once per thread: those that scripts/build-kernels.mjs has built here, or those that the
// npm package has for the platform.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { packageFile } from '../common/package-files.js';

/** The first folder that has an addon wins: what was built here fits this machine. */
const FOLDERS = ['build/kernels', `build/prebuilt/${process.platform}-${process.arch}`];

/** The path of an addon, which need not exist. */
export function addonPath(fileName: string): string {
  const paths = FOLDERS.map((folder) => packageFile(`${folder}/${fileName}`));
  return paths.find((path) => existsSync(path)) ?? paths[0]!;
}

/** The command that builds addons; `names` are arguments of the script. */
export function buildCommand(...names: readonly string[]): string {
  const script = packageFile('scripts/build-kernels.mjs');
  return `\`${['node', script, ...names].join(' ')}\``;
}

/**
 * Loads an addon, whose functions `Addon` declares. Throws, with a message for an operator, when it is
 * not built (`missing` says what to do) or does not load. Node keeps loaded addons, so repeated calls
 * are cheap.
 */
export function loadAddon<Addon>(path: string, missing: string): Addon {
  if (!existsSync(path)) throw new Error(missing);
  return createRequire(import.meta.url)(path) as Addon;
}
