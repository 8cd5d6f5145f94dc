// Packages that npm does not install by default because few installations need them. package.json lists them as optional
// peers, which fixes their versions.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageFile } from '../common/package-files.js';

const requireHere = createRequire(import.meta.url);

/** Says which of the packages are not installed and how to install them; null when all of them are installed. */
export function describeMissing(names: readonly string[]): string | null {
  const missing = names.filter((name) => optionalFolder(name) === null);
  if (missing.length === 0) return null;
  const versions = optionalVersions();
  const words = missing.map((name) => `${name}@${versions[name]}`).join(' ');
  const subject = missing.length === 1 ? 'package is' : 'packages are';
  return `the npm ${subject} not installed: ${missing.join(', ')}; run \`npm install ${words}\` where sagitta is installed`;
}

/** An optional package is not installed. */
export class MissingPackageError extends Error {}

/**
 * Imports a module of an optional package. `purpose` is what needs it, such as `Reading Parquet`. Throws
 * MissingPackageError, and what the package throws when it is loaded.
 */
export async function loadOptional<Exports>(specifier: string, purpose: string): Promise<Exports> {
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0];
  const missing = describeMissing([name]);
  if (missing !== null) throw new MissingPackageError(`${purpose}: ${missing}`);
  return (await import(specifier)) as Exports;
}

/**
 * The folder of an optional package; null if it is not installed. Looks for the folder itself, because `exports` of a
 * package may refuse to resolve its name or its manifest.
 */
export function optionalFolder(name: string): string | null {
  const folders = requireHere.resolve.paths(name) ?? [];
  const found = folders.find((folder) => existsSync(join(folder, name, 'package.json')));
  return found === undefined ? null : join(found, name);
}

function optionalVersions(): Readonly<Record<string, string>> {
  const text = readFileSync(packageFile('package.json'), 'utf8');
  return (JSON.parse(text) as { peerDependencies: Record<string, string> }).peerDependencies;
}
