// Runs the compiled tests with Node's test runner and exits with its code. The files of a folder
// share a process, in which each is a suite. A file says by its name in which run it takes part.
//
//   npm test                                    *.test.ts, the tests that take a second at most
//   node scripts/test.mjs --ci                  *.ci.test.ts
//   node scripts/test.mjs --nightly             all files, with more rounds of random tests
//   npm test -- server/routes                   files whose path contains `server/routes`, of every run
//   npm test -- --test-name-pattern=cursor      options of Node's test runner

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Ends a process that hangs, so that the others still report; the longest takes some minutes. */
const TEST_MS_MAX = 1_800_000;

/** Processes at once: one more than two cores, since tests also wait for timeouts and processes. */
const CONCURRENCY = 3;
/** Folders that take longest, which start first so that no process runs alone at the end. */
const LONGEST_FIRST = ['conformance', 'cli', 'server/auth', 'server/transport', 'server/ingest'];

const root = fileURLToPath(new URL('..', import.meta.url));
/** The runs that a test file can name in its own name: `*.ci.test.ts`, `*.nightly.test.ts`. */
const isNightly = process.argv.includes('--nightly');
const isCi = process.argv.includes('--ci');
const options = process.argv
  .slice(2)
  .filter((word) => word.startsWith('-') && word !== '--nightly' && word !== '--ci');
const parts = process.argv.slice(2).filter((word) => !word.startsWith('-'));

const files = readdirSync(join(root, 'test'), { recursive: true })
  .filter((path) => path.endsWith('.test.ts'))
  .filter((path) =>
    parts.length === 0 ? isInRun(path) : parts.some((part) => path.includes(part)),
  )
  .sort();

if (files.length === 0)
  fail(`no test file has ${parts.map((part) => `"${part}"`).join(' or ')} in its path`);
const missing = files.find((file) => !existsSync(compiled(file)));
if (missing !== undefined) fail(`${compiled(missing)} is missing: run \`npm run build\` first`);

const runner = spawn(
  process.execPath,
  [
    '--test',
    '--enable-source-maps',
    '--test-reporter=spec',
    `--test-concurrency=${CONCURRENCY}`,
    `--test-timeout=${TEST_MS_MAX}`,
    ...options,
    ...writeGroups(groupByFolder(files)),
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(isNightly ? { SAGITTA_TEST_NIGHTLY: '1' } : {}) },
  },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => runner.kill(signal));
runner.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});

/** `npm test` has the files without a run in their name, --ci those for CI, --nightly all. */
function isInRun(path) {
  if (isNightly) return true;
  if (isCi) return path.endsWith('.ci.test.ts');
  return !/\.(ci|nightly)\.test\.ts$/.test(path);
}

/** Files by the name of their group, in the order in which the groups start. */
function groupByFolder(paths) {
  const groups = new Map(LONGEST_FIRST.map((folder) => [folder, []]));
  for (const path of paths) {
    // Long tests kill processes and fill the memory: each has a process of its own.
    const name = /\.(ci|nightly)\.test\.ts$/.test(path) ? path : dirname(path);
    groups.set(name, [...(groups.get(name) ?? []), path]);
  }
  return [...groups].filter(([, own]) => own.length > 0);
}

/** Writes a program for each group, which imports its files as suites; returns the paths. */
function writeGroups(groups) {
  const folder = join(root, 'dist', 'test-groups');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return groups.map(([name, paths]) => {
    const importOf = (path) => JSON.stringify(`./${relative(folder, compiled(path))}`);
    const suites = paths.map(
      (path) => `describe(${JSON.stringify(path)}, async () => {
  after(releaseLeftovers);
  await import(${importOf(path)});
});
`,
    );
    const program = join(folder, `${name.replaceAll('/', '-')}.mjs`);
    writeFileSync(
      program,
      `import { after, describe } from 'node:test';
import { releaseLeftovers } from ${importOf('support/leftovers.ts')};
${suites.join('')}`,
    );
    return program;
  });
}

function compiled(path) {
  return join(root, 'dist', 'test', path.replace(/\.ts$/, '.js'));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
