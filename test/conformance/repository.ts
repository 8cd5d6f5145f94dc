// Paths in the repository, for compiled tests in any folder.

import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder that contains package.json. A build elsewhere may contain a link to that file. */
const REPOSITORY = dirname(realpathSync(findUpwards(dirname(fileURLToPath(import.meta.url)))));

export function inRepository(...parts: string[]): string {
  return join(REPOSITORY, ...parts);
}

function findUpwards(directory: string): string {
  const candidate = join(directory, 'package.json');
  if (existsSync(candidate)) return candidate;
  const parent = dirname(directory);
  if (parent === directory)
    throw new Error('expected a package.json above the compiled tests, found none');
  return findUpwards(parent);
}
