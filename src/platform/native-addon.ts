// Loads native addons once per thread: those built here by scripts/build-kernels.mjs, or those that the npm package
// contains for the platform.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { packageFile } from '../common/package-files.js';

/** In order of preference, because an addon built here fits this machine best. */
const FOLDERS = ['build/kernels', `build/prebuilt/${process.platform}-${process.arch}`];

/** The path of an addon, which need not exist. */
export function addonPath(fileName: string): string {
  const paths = FOLDERS.map((folder) => packageFile(`${folder}/${fileName}`));
  return paths.find((path) => existsSync(path)) ?? paths[0]!;
}

/** The command that builds addons; `names` are the arguments of the script. */
export function buildCommand(...names: readonly string[]): string {
  const script = packageFile('scripts/build-kernels.mjs');
  return `\`${['node', script, ...names].join(' ')}\``;
}

/**
 * Loads an addon with the functions that `Addon` declares. Throws an error for an operator if it is not built
 * (`missing` says what to do) or fails to load. Node caches loaded addons, so repeated calls are cheap.
 */
export function loadAddon<Addon>(path: string, missing: string): Addon {
  if (!existsSync(path)) throw new Error(missing);
  return createRequire(import.meta.url)(path) as Addon;
}
