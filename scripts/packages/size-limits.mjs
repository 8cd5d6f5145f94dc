// Limits on the sizes of what people download. A little over a limit is a warning, so that no day's work is lost for a
// few bytes; more is an error.

import { statSync } from 'node:fs';
import { basename } from 'node:path';

const TOLERANCE = 1.05;

/** Of what `npm pack` writes. Builds of the kernels for both platforms are 4 MB of the server. */
export const PACKAGE_BYTES_MAX = {
  '@sagitta/client': 100_000,
  '@sagitta/langchain': 20_000,
  sagitta: 12_000_000,
};

/** The options with which npm packs the packages that are published, and not the console. */
export const PACKED = [
  ...Object.keys(PACKAGE_BYTES_MAX)
    .filter((name) => name.startsWith('@'))
    .flatMap((name) => ['--workspace', name]),
  '--include-workspace-root',
];

/** Prints the size of a file. Throws when it is more than 5 % over the limit. */
export function requireSize(file, bytesMax) {
  requireBytes(basename(file), statSync(file).size, bytesMax);
}

/** The same for a size that is known. */
export function requireBytes(name, bytes, bytesMax) {
  const found = `${name} has ${megabytes(bytes)}, the limit is ${megabytes(bytesMax)}`;
  if (bytes > bytesMax * TOLERANCE) throw new Error(found);
  console.log(bytes > bytesMax ? `warning: ${found}` : found);
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(2)} MB`;
}
