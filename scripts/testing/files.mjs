// The test files and the run that each belongs to.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The run that a file belongs to: `quick`, `ci` or `nightly`. */
export function tierOf(file) {
  return /\.(ci|nightly)\.test\.ts$/.exec(file)?.[1] ?? 'quick';
}

/**
 * Sorted paths of the tests in test/ and in each package, relative to the checkout at `root`. The nightly run includes
 * the files of all runs. `parts` selects files by parts of their paths; `except` leaves files out.
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

/** The path that the build writes the compiled file to. */
export function compiledPath(root, file) {
  return join(root, 'dist', file.replace(/\.ts$/, '.js'));
}
