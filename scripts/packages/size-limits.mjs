// Limits on the sizes of downloads. Up to 5 % over a limit is a warning, so that a few bytes do not block a change;
// more is an error.

import { statSync } from 'node:fs';
import { basename } from 'node:path';

const TOLERANCE = 1.05;

/** Limits on the archives that `npm pack` writes. The kernels for both platforms are 4 MB of the server's. */
export const PACKAGE_BYTES_MAX = {
  '@sagitta/client': 100_000,
  '@sagitta/langchain': 20_000,
  sagitta: 12_000_000,
};

/** The options that make npm pack the published packages but not the console. */
export const PACKED = [
  ...Object.keys(PACKAGE_BYTES_MAX)
    .filter((name) => name.startsWith('@'))
    .flatMap((name) => ['--workspace', name]),
  '--include-workspace-root',
];

/** Prints the size of a file. Throws if it is more than 5 % over the limit. */
export function requireSize(file, bytesMax) {
  requireBytes(basename(file), statSync(file).size, bytesMax);
}

/** Does the same for a known size. */
export function requireBytes(name, bytes, bytesMax) {
  const found = `Expected at most ${megabytes(bytesMax)} for ${name}; found ${megabytes(bytes)}`;
  if (bytes > bytesMax * TOLERANCE) throw new Error(found);
  console.log(bytes > bytesMax ? `warning: ${found}` : found);
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(2)} MB`;
}
