// Publishes the packages: checks the repository, rebuilds everything with kernels for both platforms, packs, looks up
// the registry, and publishes the missing packages, dependencies first. Runs in CI, which signs the provenance. It can
// run again after a failure.
//
//   node scripts/packages/publish.mjs --dry-run    packs the existing build, publishes nothing, and reports everything
//                                                  that would stop a release
//   node scripts/packages/publish.mjs              needs a clean checkout and a CI that npm accepts for provenance

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { packBuilt } from './pack.mjs';
import { publishMissing } from './registry.mjs';
import { PACKAGE_BYTES_MAX, PACKED, requireBytes } from './size-limits.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Dependencies first. */
const PACKAGES = ['@sagitta/client', '@sagitta/langchain', 'sagitta'];
/** Files that a package is useless without, to detect incomplete builds. */
const REQUIRED = {
  '@sagitta/client': [
    'dist/packages/client/src/client.js',
    'dist/packages/client/src/arrow.d.ts',
    'README.md',
    'LICENSE',
  ],
  '@sagitta/langchain': ['dist/packages/langchain/src/vector-store.d.ts', 'README.md', 'LICENSE'],
  sagitta: [
    'dist/app/cli/main.js',
    'dist/console/index.html',
    'build/prebuilt/linux-x64/sagitta.node',
    'build/prebuilt/linux-arm64/sagitta.node',
    'kernels/node/addon.cpp',
    'examples/data/wordnet-sentences.arrow',
    'scripts/sagitta.cjs',
    'LICENSE',
    'NOTICE',
  ],
};

const { values: options } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false } },
});
const { version, repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'sagitta-publish-'));
try {
  run(process.execPath, ['scripts/packages/manifests.mjs']);
  checkChangelog();
  checkRelease();
  const packed = options['dry-run'] ? packBuilt() : rebuildAndPack();
  const packages = PACKAGES.map((name) => checkArchive(name, packed));
  const tag = version.includes('-') ? 'next' : 'latest';
  await publishMissing(packages, {
    repositoryUrl: repository?.url,
    isDryRun: options['dry-run'],
    // Without an unused tag, npm would compare the version with the published one.
    words: options['dry-run'] ? ['--dry-run', '--tag', 'dry-run'] : ['--provenance', '--tag', tag],
  });
} catch (error) {
  fail(error.message);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** A release needs a date in the changelog. A dry run accepts a version without one. */
function checkChangelog() {
  const text = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  const heading = text.split('\n').find((line) => line.startsWith(`## [${version}] - `));
  const isDated = /- \d{4}-\d{2}-\d{2}$/.test(heading ?? '');
  if (heading === undefined || !(isDated || options['dry-run'])) {
    fail(`Expected "## [${version}] - <date>" in CHANGELOG.md; found "${heading ?? 'no heading'}"`);
  }
}

function checkRelease() {
  const changes = run('git', ['status', '--porcelain'], 'pipe');
  if (changes !== '')
    failUnlessDryRun(`the checkout has changes; commit or remove them:\n${changes}`);
  if (repository === undefined) {
    failUnlessDryRun(
      'package.json has no `repository`, with which npm compares where the packages were built; run ' +
        '`node scripts/packages/manifests.mjs --repository https://github.com/OWNER/NAME`',
    );
  }
}

/** Ends the program, whereas a dry run reports the problem and continues. */
function failUnlessDryRun(problem) {
  if (!options['dry-run']) fail(problem);
  console.error(`publish: without --dry-run this would fail: ${problem}`);
}

/** Rebuilds the packages by their `prepack` scripts and packs them. Returns npm's description of the archives. */
function rebuildAndPack() {
  const words = ['pack', '--json', '--pack-destination', folder];
  const output = run('npm', [...words, ...PACKED], 'pipe');
  // The builds print lines ahead of the JSON.
  const packed = JSON.parse(output.slice(output.search(/^\[\s*$/m)));
  return packed.map((each) => ({ ...each, archive: join(folder, each.filename) }));
}

/** Checks the archive of a package and returns its description. */
function checkArchive(name, packed) {
  const found = packed.find((each) => each.name === name);
  if (found === undefined)
    fail(`Expected npm to pack ${name}; found ${packed.map((each) => each.name)}`);
  const paths = new Set(found.files.map(({ path }) => path));
  const missing = REQUIRED[name].filter((path) => !paths.has(path));
  if (missing.length > 0) fail(`Expected ${missing.join(', ')} in ${found.filename}; found none`);
  if (found.version !== version)
    fail(`Expected version ${version} of ${name}; found ${found.version}`);
  requireBytes(found.filename, found.size, PACKAGE_BYTES_MAX[name]);
  if (!existsSync(found.archive)) fail(`npm did not write ${found.filename}`);
  return { name, version, integrity: found.integrity, archive: found.archive };
}

/** Returns stdout if it is piped. Ends the program if the command fails. */
function run(command, words, stdout = 'inherit') {
  const { status, error, ...output } = spawnSync(command, words, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', stdout, 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) fail(`${command}: ${error.message}`);
  if (status !== 0)
    fail(`${command} ${words.join(' ')} exited with ${status}\n${output.stdout ?? ''}`);
  return output.stdout;
}

function fail(message) {
  rmSync(folder, { recursive: true, force: true });
  console.error(`publish: ${message}`);
  process.exit(1);
}
