// Keeps the version and the repository equal in the manifests of all packages; package.json at the root is
// authoritative. Compares the other manifests with it or sets all of them.
//
//   node scripts/packages/manifests.mjs                     lists differences and fails if there are any
//   node scripts/packages/manifests.mjs --version 0.2.0     sets the version in every package.json and the lock
//   node scripts/packages/manifests.mjs --repository https://github.com/OWNER/NAME

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VERSION = /^\d+\.\d+\.\d+(-[0-9a-z.]+)?$/;
const REPOSITORY = /^https:\/\/[^/]+\/.+[^/]$/;

const { version, repository } = parseArgs({
  options: { version: { type: 'string' }, repository: { type: 'string' } },
}).values;
if (version === undefined && repository === undefined) check();
else setAll();

function check() {
  const root = readManifest('package.json');
  const problems = packageFolders().flatMap((folder) => {
    const path = `${folder}/package.json`;
    const manifest = readManifest(path);
    const siblings = siblingsIn(manifest.dependencies).map((name) => [
      `${path} needs ${name}`,
      manifest.dependencies[name],
      root.version,
    ]);
    const own = manifest.repository;
    return [
      [`${path} is`, manifest.version, root.version],
      ...siblings,
      [`${path} has the repository`, own?.url, root.repository?.url],
      [`${path} has the folder`, own?.directory, root.repository && folder],
    ].filter(([, found, expected]) => found !== expected);
  });
  for (const [what, found, expected] of problems) {
    console.error(
      `manifests: ${what} ${found ?? 'none'}; expected ${expected ?? 'none'} as in package.json`,
    );
  }
  if (problems.length === 0) console.log(`manifests: all packages are ${root.version}`);
  else process.exitCode = 1;
}

function setAll() {
  if (version !== undefined && !VERSION.test(version)) {
    fail(`Expected a version such as 1.2.3 or 1.2.3-beta.1; found "${version}"`);
  }
  if (repository !== undefined && !REPOSITORY.test(repository)) {
    fail(`Expected a repository https://HOST/OWNER/NAME; found "${repository}"`);
  }
  for (const folder of ['.', ...packageFolders()]) {
    const path = join(folder, 'package.json');
    const manifest = readManifest(path);
    if (version !== undefined) {
      manifest.version = version;
      for (const name of siblingsIn(manifest.dependencies)) manifest.dependencies[name] = version;
    }
    if (repository !== undefined) {
      const url = `git+${repository.replace(/(\.git)?$/, '.git')}`;
      manifest.repository = { type: 'git', url, ...(folder !== '.' && { directory: folder }) };
    }
    writeFileSync(join(ROOT, path), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  if (version !== undefined) {
    const words = ['install', '--package-lock-only', '--ignore-scripts'];
    const { status } = spawnSync('npm', words, { cwd: ROOT, stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
  check();
  console.log('manifests: written; run `npx biome check --write .`');
}

function packageFolders() {
  return readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}`);
}

function siblingsIn(dependencies = {}) {
  return Object.keys(dependencies).filter((name) => name.startsWith('@sagitta/'));
}

function readManifest(path) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}

function fail(message) {
  console.error(`manifests: ${message}`);
  process.exit(2);
}
