// Conventions that neither biome nor the compiler checks: the names and headers of files, forbidden lines, and a README
// in large folders. layers.test.ts checks imports.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** A header says what the file is, what it guarantees and what it leaves to others. */
const HEADER_LINES_MAX = 5;
/** A larger folder needs a README that says what it contains and where to start reading. */
const FILES_WITHOUT_README_MAX = 10;

/** Names that mean nothing, because anything would fit under them. */
const EMPTY_NAMES = ['common', 'helper', 'helpers', 'index', 'misc', 'shared', 'util', 'utils'];

const SKIPPED = ['node_modules', 'data', '.git', 'coverage', 'build', '.venv'];
/** Output folders of compilers and Python tools, ignored at any depth. */
const OUTPUTS = ['dist', '.mypy_cache', '.ruff_cache', '.pytest_cache', '.hypothesis'];
const GENERATED = ['package-lock.json', 'openapi.json', 'docs/configuration.md', 'LICENSE'];
const BINARY = /\.(arrow|gz|png|ico|wasm|node)$/;

/** This file contains the patterns it forbids. */
const SELF = 'test/repository/tidy.test.ts';

/** Lines that no file may contain, besides those that biome and the compiler refuse. */
const FORBIDDEN: readonly { what: string; pattern: RegExp; files: RegExp }[] = [
  { what: 'a note for later', pattern: /\b(TODO|FIXME|XXX|HACK)\b/, files: /./ },
  {
    what: 'a disabled compiler',
    pattern: /@ts-(ignore|nocheck|expect-error)/,
    files: /\.(ts|mjs)$/,
  },
  {
    what: 'a test that runs alone or not at all',
    pattern: /\b(test|it|describe)\.(only|todo)\b|\b(only|todo): true\b/,
    files: /^test\/.*\.ts$/,
  },
  { what: 'a path of a machine', pattern: /(?<![\w.])\/(home|root|Users|work)\/\w/, files: /./ },
  {
    what: 'a path of a temporary folder, instead of os.tmpdir()',
    pattern: /['"`]\/tmp\b/,
    files: /\.(ts|mjs)$/,
  },
  {
    what: 'a listener on an abort signal, instead of whenAborted',
    pattern: /addEventListener\('abort'/,
    files: /^src\/(?!common\/when-aborted)/,
  },
  {
    what: 'AbortSignal.any, which ignores the signal of a request, instead of anySignal',
    pattern: /AbortSignal\.any\(/,
    files: /^src\/(database|server)\//,
  },
  {
    what: 'the host of a package registry',
    pattern: /registry\.[a-z]+js\.|\.npmrc\b|_authToken/,
    files: /./,
  },
];

/** The root of the checkout. The compiled test is in dist. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const files = listFiles('');
const code = files.filter((path) => /\.(ts|mjs)$/.test(path));

test('source files have kebab-case names with a meaning', () => {
  assertNone(
    code.flatMap((path) => {
      const name = basename(path).replace(/((\.(ci|nightly))?\.test|\.d)?\.(ts|mjs)$/, '');
      if (EMPTY_NAMES.includes(name)) return [`${path}: "${name}" says nothing`];
      if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return [`${path}: expected kebab-case`];
      return [];
    }),
  );
});

test(`every source file begins with a comment of at most ${HEADER_LINES_MAX} lines`, () => {
  assertNone(
    code
      .filter((path) => /^(src|scripts|bench)\//.test(path))
      .map((path) => ({ path, lineCount: headerLines(read(path)) }))
      .filter(({ lineCount }) => lineCount === 0 || lineCount > HEADER_LINES_MAX)
      .map(({ path, lineCount }) => `${path}: found ${lineCount} lines`),
  );
});

test('no file contains a line of a forbidden kind', () => {
  assertNone(
    files
      .filter((path) => path !== SELF && !BINARY.test(path) && !GENERATED.includes(path))
      .flatMap((path) => {
        const rules = FORBIDDEN.filter((rule) => rule.files.test(path));
        const lines = read(path).split('\n');
        return lines.flatMap((line, i) =>
          rules
            .filter(({ pattern }) => pattern.test(line))
            .map(({ what }) => `${path}:${i + 1} has ${what}: ${line.trim().slice(0, 80)}`),
        );
      }),
  );
});

test(`every folder of more than ${FILES_WITHOUT_README_MAX} files has a README.md`, () => {
  const counts = new Map<string, number>();
  // The tests of a subject for CI and the nightly run count as one file with it.
  const subjects = new Set(
    code.map((path) => path.replace(/\.(ci|nightly)\.test\.ts$/, '.test.ts')),
  );
  for (const path of subjects) {
    const folder = path.slice(0, path.lastIndexOf('/'));
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  assertNone(
    [...counts]
      .filter(([, count]) => count > FILES_WITHOUT_README_MAX)
      .filter(([folder]) => !files.includes(`${folder}/README.md`))
      .map(([folder, count]) => `${folder} has ${count} files and no README.md`),
  );
});

/** Number of lines in a file's header comment, without those that show how to call a script. */
function headerLines(text: string): number {
  const lines = text.replace(/^#!.*\n/, '').split('\n');
  const header = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('//')),
  );
  const usage = header.indexOf('//');
  return usage === -1 ? header.length : usage;
}

function listFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !OUTPUTS.includes(name) && (folder !== '' || !SKIPPED.includes(name)))
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return listFiles(path);
      return entry.isFile() && !/\.(log|cpuprofile)$/.test(path) ? [path] : [];
    })
    .sort();
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function assertNone(violations: readonly string[]): void {
  assert.ok(code.length > 0, `found no code below ${ROOT}`);
  assert.equal(violations.length, 0, `\n  ${violations.join('\n  ')}\n`);
}
