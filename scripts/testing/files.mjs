// The test files, and the run that each names in its own name.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The run that a file takes part in: `quick`, `ci` or `nightly`. */
export function tierOf(file) {
  return /\.(ci|nightly)\.test\.ts$/.exec(file)?.[1] ?? 'quick';
}

/**
 * Paths relative to test/ of the checkout at `root`, sorted. The nightly run has the files of all runs. `parts` chooses files by parts
 * of their path; `except` leaves files out.
 */
export function listTests(root, { tier, parts, except }) {
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => tier === 'nightly' || tierOf(file) === tier)
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
    .filter((file) => !except.some((part) => file.includes(part)))
    .sort();
}

/** Where the build puts the file. */
export function compiledPath(root, file) {
  return join(root, 'dist', 'test', file.replace(/\.ts$/, '.js'));
}
