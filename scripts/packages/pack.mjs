// Packs the npm packages from the existing build, with kernels for all platforms that have a compiler here. The
// archives are reused until a file changes.
//
//   node scripts/packages/pack.mjs      after `npm run build`; prints npm's description of the archives as JSON

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestOf } from '../building/inputs.mjs';
import { PRODUCTS, ROOT } from '../building/products.mjs';
import { PACKED } from './size-limits.mjs';

const ARCHIVES = join(ROOT, PRODUCTS.server.output);
/** Lists the archives, in the same folder. */
const LIST = 'packed.json';
/** The paths that `files` in the manifests select from. build/prebuilt depends on the kernels. */
const INPUTS = [
  ...PRODUCTS.server.sources,
  ...['app', 'console'].map((name) => PRODUCTS[name].output),
  ...['packages/client', 'packages/langchain'],
  ...PRODUCTS.server.scripts,
];

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(packBuilt()));
}

/**
 * Returns the archives, each with its description by `npm pack --json`. Packs them if they are out of date.
 *
 * @returns {readonly { name: string, version: string, filename: string, integrity: string, size: number,
 *   files: readonly { path: string }[], archive: string }[]}
 */
export function packBuilt() {
  const missing = INPUTS.find((path) => !existsSync(join(ROOT, path)));
  if (missing !== undefined) throw new Error(`${missing} is missing: run \`npm run build\``);
  const folder = join(ARCHIVES, digestOf(INPUTS).slice(0, 16));
  if (!existsSync(folder)) packInto(folder);
  const packed = JSON.parse(readFileSync(join(folder, LIST), 'utf8'));
  return packed.map((each) => ({ ...each, archive: join(folder, each.filename) }));
}

/** Packs into a temporary folder and renames it, because several tests may call this at once. */
function packInto(folder) {
  run(process.execPath, ['scripts/packages/prebuild.mjs', '--if-possible']);
  mkdirSync(ARCHIVES, { recursive: true });
  const earlier = readdirSync(ARCHIVES);
  const fresh = mkdtempSync(join(ARCHIVES, 'new-'));
  const options = ['--ignore-scripts', '--json', '--pack-destination', fresh];
  writeFileSync(join(fresh, LIST), run('npm', ['pack', ...PACKED, ...options]));
  if (existsSync(folder)) {
    rmSync(fresh, { recursive: true });
    return;
  }
  renameSync(fresh, folder);
  for (const name of earlier.filter((each) => !each.startsWith('new-'))) {
    rmSync(join(ARCHIVES, name), { recursive: true, force: true });
  }
}

/** Runs a command and returns what it prints to stdout. */
function run(command, words) {
  const { status, error, stdout } = spawnSync(command, words, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} exited with ${status}`);
  return stdout;
}
