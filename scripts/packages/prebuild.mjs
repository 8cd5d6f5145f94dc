// Builds the kernels that the npm package contains, build/prebuilt/<platform>/sagitta.node. They are part of the
// package, not optional packages per platform: together they take about a megabyte, and a single package cannot be
// published by halves.
//
//   node scripts/packages/prebuild.mjs                   builds for every platform
//   node scripts/packages/prebuild.mjs --if-possible     leaves out platforms without a compiler here

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findGlibc } from '../bundle/notes.mjs';

/** The prefix of the compiler's programs and the folder in build, by Node's name for the platform. */
const PLATFORMS = {
  'linux-x64': { prefix: 'x86_64-linux-gnu', folder: 'kernels-x86_64' },
  'linux-arm64': { prefix: 'aarch64-linux-gnu', folder: 'kernels-aarch64' },
};
/** Ubuntu 22.04 and RHEL 9 have glibc 2.34 or later; Debian 12, which builds the kernels, has 2.36. */
const GLIBC_MINOR_MAX = 34;

const root = fileURLToPath(new URL('../..', import.meta.url));
const isOptional = process.argv.includes('--if-possible');
rmSync(join(root, 'build/prebuilt'), { recursive: true, force: true });
for (const [platform, tools] of Object.entries(PLATFORMS)) {
  if (hasCompiler(tools)) build(platform, tools);
  else report(`no ${tools.prefix}-g++, so the package has no kernels for ${platform}`);
}

function hasCompiler({ prefix }) {
  return spawnSync(`${prefix}-g++`, ['--version']).status === 0;
}

function build(platform, { prefix, folder }) {
  const script = join(root, 'scripts/build-kernels.mjs');
  run(process.execPath, [script, 'addon', '--cross', `${prefix}-g++`]);
  const path = join('build/prebuilt', platform, 'sagitta.node');
  const target = join(root, path);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(root, 'build', folder, 'sagitta.node'), target);
  run(`${prefix}-strip`, [target]);
  const bytes = readFileSync(target);
  const glibc = findGlibc(bytes);
  if (glibc[1] > GLIBC_MINOR_MAX) {
    report(`${path} needs glibc ${glibc.join('.')}, expected 2.${GLIBC_MINOR_MAX} or earlier`);
  }
  console.log(`${path}: ${bytes.byteLength} bytes, needs glibc ${glibc.join('.')}`);
}

function run(command, words) {
  const { status, error } = spawnSync(command, words, { stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

function report(problem) {
  console.error(`prebuild: ${problem}`);
  if (!isOptional) process.exit(1);
}
