// The test files, and the run that each names in its own name.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The run that a file takes part in: `quick`, `ci` or `nightly`. */
export function tierOf(file) {
  return /\.(ci|nightly)\.test\.ts$/.exec(file)?.[1] ?? 'quick';
}

/**
 * Paths relative to the checkout at `root`, sorted: the tests of test/ and of each package. The nightly run has the files
 * of all runs. `parts` chooses files by parts of their path; `except` leaves files out.
 */
export function listTests(root, { tier, parts, except }) {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/test`);
  return ['test', ...packages]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((file) => `${folder}/${file}`),
    )
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => tier === 'nightly' || tierOf(file) === tier)
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
    .filter((file) => !except.some((part) => file.includes(part)))
    .sort();
}

/** Where the build puts the file. */
export function compiledPath(root, file) {
  return join(root, 'dist', file.replace(/\.ts$/, '.js'));
}
