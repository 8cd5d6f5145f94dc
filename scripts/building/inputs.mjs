// Decides whether a build has to run: each build stores the digest of its inputs beside its output.

import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { inputsOf, PRODUCTS, ROOT } from './products.mjs';

/**
 * Builds a product of products.mjs unless the existing build was made from the same inputs. A build that fails or is
 * interrupted runs again next time.
 */
export async function buildIfChanged(name, build) {
  const output = join(ROOT, PRODUCTS[name].output);
  const stamp = join(ROOT, 'dist', `.${name}-inputs`);
  const digest = digestOf(inputsOf(name));
  const isCurrent = existsSync(stamp) && readFileSync(stamp, 'utf8') === digest;
  if (isCurrent && existsSync(output)) return;
  const why = existsSync(output) ? 'its sources have changed' : 'for the first time';
  console.log(`${name}: building (${why}), which takes up to a minute …`);
  rmSync(stamp, { force: true });
  await build();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, digest);
}

/** A single digest of the names and contents of the given files and of all files in the given folders. */
export function digestOf(inputs) {
  const hash = createHash('sha256');
  for (const input of inputs) {
    const path = join(ROOT, input);
    for (const file of statSync(path).isDirectory() ? filesIn(path) : [path]) {
      hash.update(file.slice(ROOT.length)).update('\0').update(readFileSync(file)).update('\0');
    }
  }
  return hash.digest('hex');
}

/** Paths of all files below a folder, sorted. */
export function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
