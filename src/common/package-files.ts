// Where the files of this package are. The program runs either as one module per source file in dist/src, or as the few
// bundled files in dist/app. The modules that start threads and processes have the same paths in both, so the code need
// not know which of the two it is part of.

import { readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const OUTPUT = `${sep}dist${sep}`;
const OWN_PATH = fileURLToPath(import.meta.url);
const ROOT = OWN_PATH.slice(0, OWN_PATH.lastIndexOf(OUTPUT));
const PROGRAM = join(ROOT, 'dist', OWN_PATH.slice(ROOT.length + OUTPUT.length).split(sep)[0]!);

/** The path of a file of the package, which need not exist; `path` is relative to the package. */
export function packageFile(path: string): string {
  return join(ROOT, path);
}

/** The path of the module that a thread or process starts with, such as `worker.js`. */
export function programFile(path: string): string {
  return join(PROGRAM, path);
}

/** The version in package.json. */
export function packageVersion(): string {
  const text = readFileSync(packageFile('package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
