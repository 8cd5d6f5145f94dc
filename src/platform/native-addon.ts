// Loads the native addons that scripts/build-kernels.mjs builds, once per thread.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Relative to the compiled file in dist/. */
const FOLDER_URL = new URL('../../../build/kernels/', import.meta.url);

/** The path of an addon in the build folder. */
export function addonPath(fileName: string): string {
  return fileURLToPath(new URL(fileName, FOLDER_URL));
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
