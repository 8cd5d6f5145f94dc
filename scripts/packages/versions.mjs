// The version of all packages is that of package.json at the root. Compares the others with it, or sets all.
//
//   node scripts/packages/versions.mjs                checks; fails with what differs
//   node scripts/packages/versions.mjs --set 0.2.0    writes it to package.json of each package and the lock

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VERSION = /^\d+\.\d+\.\d+(-[0-9a-z.]+)?$/;

const { set } = parseArgs({ options: { set: { type: 'string' } } }).values;
if (set === undefined) check();
else setAll(set);

function check() {
  const { version } = readManifest('package.json');
  const problems = manifests().flatMap((path) => {
    const { version: own, dependencies } = readManifest(path);
    const needed = siblingsIn(dependencies).map((name) => [
      `${path} needs ${name}`,
      dependencies[name],
    ]);
    return [[`${path} is`, own], ...needed].filter(([, found]) => found !== version);
  });
  for (const [what, found] of problems) {
    console.error(`versions: ${what} ${found}, expected ${version} as in package.json`);
  }
  if (problems.length === 0) console.log(`versions: all packages are ${version}`);
  else process.exitCode = 1;
}

function setAll(version) {
  if (!VERSION.test(version)) {
    console.error(`versions: found "${version}", expected a version such as 1.2.3 or 1.2.3-beta.1`);
    process.exit(2);
  }
  for (const path of ['package.json', ...manifests()]) {
    const manifest = readManifest(path);
    manifest.version = version;
    for (const name of siblingsIn(manifest.dependencies)) manifest.dependencies[name] = version;
    writeFileSync(join(ROOT, path), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const words = ['install', '--package-lock-only', '--ignore-scripts'];
  const { status } = spawnSync('npm', words, { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
  console.log(`versions: all packages are ${version}; run \`npx biome check --write .\``);
}

function manifests() {
  return readdirSync(join(ROOT, 'packages')).map((folder) => `packages/${folder}/package.json`);
}

function siblingsIn(dependencies = {}) {
  return Object.keys(dependencies).filter((name) => name.startsWith('@sagitta/'));
}

function readManifest(path) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}
