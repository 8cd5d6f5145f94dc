// Writes a generated file of the repository. With `--check`, compares it with the existing file instead, so that
// CI detects files that are out of date.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `path` is relative to the root of the repository. */
export function writeGenerated(path, text) {
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url));
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
    console.log(`${path} written`);
    return;
  }
  const found = readIfExists(file);
  if (found === text) {
    console.log(`${path} is up to date`);
    return;
  }
  console.error(`${path} is ${found === undefined ? 'missing' : 'out of date'}`);
  if (found !== undefined) console.error(describeDifference(found, text));
  console.error('Regenerate it with: npm run openapi');
  process.exitCode = 1;
}

function readIfExists(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function describeDifference(found, expected) {
  const foundLines = found.split('\n');
  const expectedLines = expected.split('\n');
  const at = expectedLines.findIndex((line, index) => line !== foundLines[index]);
  const line = at === -1 ? expectedLines.length : at;
  return `line ${line + 1}: expected "${expectedLines[line] ?? ''}", found "${foundLines[line] ?? ''}"`;
}
