// Publishes the packages: checks the repository, builds everything anew with the kernels of both platforms, packs,
// looks up what the registry has, and publishes the rest in the order in which the packages need each other. Run by
// CI, which signs where they come from. After a failure it can be run again.
//
//   node scripts/packages/publish.mjs --dry-run    packs what is built instead, and publishes nothing; tells what would
//                                                  prevent it, and goes on
//   node scripts/packages/publish.mjs              needs a clean checkout, and a CI that npm knows for provenance

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
/** Files without which a package is of no use, to catch a build that left something out. */
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
    'examples/data/wordnet.arrow',
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
  const packed = options['dry-run'] ? packBuilt() : packAnew();
  const packages = PACKAGES.map((name) => checkArchive(name, packed));
  const tag = version.includes('-') ? 'next' : 'latest';
  await publishMissing(packages, {
    repositoryUrl: repository?.url,
    isDryRun: options['dry-run'],
    // Without a tag that is new, npm compares the version with what is published.
    words: options['dry-run'] ? ['--dry-run', '--tag', 'dry-run'] : ['--provenance', '--tag', tag],
  });
} catch (error) {
  fail(error.message);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** A release has its date; a dry run also takes one that is not released yet. */
function checkChangelog() {
  const text = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  const heading = text.split('\n').find((line) => line.startsWith(`## [${version}] - `));
  const isDated = /- \d{4}-\d{2}-\d{2}$/.test(heading ?? '');
  if (heading === undefined || !(isDated || options['dry-run'])) {
    fail(`CHANGELOG.md: found "${heading ?? 'no heading'}", expected "## [${version}] - <date>"`);
  }
}

function checkRelease() {
  const changes = run('git', ['status', '--porcelain'], 'pipe');
  if (changes !== '') prevent(`the checkout has changes; commit or remove them:\n${changes}`);
  if (repository === undefined) {
    prevent(
      'package.json has no `repository`, with which npm compares where the packages were built; run ' +
        '`node scripts/packages/manifests.mjs --repository https://github.com/OWNER/NAME`',
    );
  }
}

/** Ends the program, but not a dry run, which tells all that would. */
function prevent(problem) {
  if (!options['dry-run']) fail(problem);
  console.error(`publish: without --dry-run this ends here: ${problem}`);
}

/** `prepack` of each package builds it. Returns what npm says about the archives. */
function packAnew() {
  const words = ['pack', '--json', '--pack-destination', folder];
  const output = run('npm', [...words, ...PACKED], 'pipe');
  // The builds print lines before the JSON.
  const packed = JSON.parse(output.slice(output.search(/^\[\s*$/m)));
  return packed.map((each) => ({ ...each, archive: join(folder, each.filename) }));
}

/** Returns what to publish. */
function checkArchive(name, packed) {
  const found = packed.find((each) => each.name === name);
  if (found === undefined) fail(`npm packed ${packed.map((each) => each.name)}, expected ${name}`);
  const paths = new Set(found.files.map(({ path }) => path));
  const missing = REQUIRED[name].filter((path) => !paths.has(path));
  if (missing.length > 0) fail(`${found.filename} lacks ${missing.join(', ')}`);
  if (found.version !== version) fail(`${name} is ${found.version}, expected ${version}`);
  requireBytes(found.filename, found.size, PACKAGE_BYTES_MAX[name]);
  if (!existsSync(found.archive)) fail(`npm did not write ${found.filename}`);
  return { name, version, integrity: found.integrity, archive: found.archive };
}

/** Returns stdout where it is piped. Ends the program when the command fails. */
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
