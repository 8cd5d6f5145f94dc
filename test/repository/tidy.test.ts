// Keeps the house tidy: how long files may be, how they are named and how they begin, and what
// must not stand in them. Formatting is biome's matter, imports are layers.test.ts's.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Longer is a reason to look again, and nearly always two files. */
const LINES_MAX = 400;
/** A contract or a list of cases is read from top to bottom and gains nothing from being cut. */
const TEST_LINES_MAX = 500;
/** A file says in so many lines what it is, what it guarantees and what it leaves to others. */
const HEADER_LINES_MAX = 5;

/** Names that say nothing, so that anything could go in. */
const EMPTY_NAMES = ['common', 'helper', 'helpers', 'index', 'misc', 'shared', 'util', 'utils'];

/** What is neither ours nor the repository's. */
const SKIPPED = ['node_modules', 'dist', 'data', '.git', 'coverage', 'build', '.venv'];
const GENERATED = ['package-lock.json', 'openapi.json', 'docs/configuration.md', 'LICENSE'];
const BINARY = /\.(arrow|gz|png|ico|wasm|node)$/;

/** The file that has to spell what it forbids. */
const SELF = 'test/repository/tidy.test.ts';

interface Rule {
  readonly what: string;
  readonly pattern: RegExp;
  readonly files: RegExp;
}

const FORBIDDEN: readonly Rule[] = [
  { what: 'a note for later', pattern: /\b(TODO|FIXME|XXX|HACK)\b/, files: /./ },
  {
    what: 'the type any',
    pattern: /^(?!\s*(?:\/\/|\/?\*)).*(?:(?:[:<,|&(]|\bas)\s*any\b(?!\s*[a-z])|\bany\[\])/,
    files: /^(src|bench|examples)\/.*\.ts$/,
  },
  {
    what: 'a silenced compiler',
    pattern: /@ts-(ignore|nocheck|expect-error)/,
    files: /\.(ts|mjs)$/,
  },
  {
    what: 'an enum or a namespace',
    pattern: /^\s*(export )?(const )?(enum|namespace) \w/,
    files: /\.ts$/,
  },
  {
    what: 'a test that runs alone or not at all',
    pattern: /\b(test|it|describe)\.(only|todo)\b|\b(only|todo): true\b/,
    files: /^test\/.*\.ts$/,
  },
  {
    what: "a path of somebody's machine",
    pattern: /(?<![\w.])\/(home|root|Users|work)\/\w/,
    files: /./,
  },
  {
    what: 'a path of a temporary folder, for which os.tmpdir() is there',
    pattern: /['"`]\/tmp\b/,
    files: /\.(ts|mjs)$/,
  },
  {
    what: 'the host of a package registry',
    pattern: /registry\.[a-z]+js\.|\.npmrc\b|_authToken/,
    files: /./,
  },
];

/** The compiled test is at dist/test; the files are read where they were written. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const files = listFiles('');
const code = files.filter((path) => /\.(ts|mjs)$/.test(path));
const ours = files.filter((path) => !BINARY.test(path) && !GENERATED.includes(path));

test(`no file of code is longer than ${LINES_MAX} lines, or ${TEST_LINES_MAX} of tests`, () => {
  assertNone(
    code
      .map((path) => ({ path, lineCount: read(path).split('\n').length - 1 }))
      .filter(({ path, lineCount }) => {
        return lineCount > (path.startsWith('test/') ? TEST_LINES_MAX : LINES_MAX);
      })
      .map(({ path, lineCount }) => `${path} has ${lineCount} lines`),
  );
});

test('files are named in kebab-case after what they define', () => {
  assertNone(
    code.flatMap((path) => {
      const name = basename(path).replace(/(\.test|\.d)?\.(ts|mjs)$/, '');
      if (EMPTY_NAMES.includes(name)) return [`${path}: "${name}" says nothing`];
      if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return [`${path}: expected kebab-case`];
      return [];
    }),
  );
});

test('every source file begins by saying what it is', () => {
  assertNone(
    code
      .filter((path) => /^(src|scripts|bench)\//.test(path))
      .flatMap((path) => {
        const complaint = complainAboutHeader(read(path));
        return complaint === undefined ? [] : [`${path}: ${complaint}`];
      }),
  );
});

test('nothing forbidden stands in the files', () => {
  assertNone(
    ours
      .filter((path) => path !== SELF)
      .flatMap((path) => {
        const rules = FORBIDDEN.filter(({ files }) => files.test(path));
        return read(path)
          .split('\n')
          .flatMap((line, at) =>
            rules
              .filter(({ pattern }) => pattern.test(line))
              .map(({ what }) => `${path}:${at + 1} has ${what}: ${line.trim().slice(0, 80)}`),
          );
      }),
  );
});

test('every test file has a test', () => {
  assertNone(
    code
      .filter((path) => path.endsWith('.test.ts'))
      .filter((path) => !/\b(test|it|describe\w*|\w+Contract)\(/.test(read(path)))
      .map((path) => `${path} has none`),
  );
});

test('the rules tell what they forbid from what they allow', () => {
  const bad = [
    '// TODO: later',
    'const a: any = 1;',
    'f(x as any)',
    'const list: any[] = [];',
    'const map = new Map<string, any>();',
    '// @ts-ignore',
    'export const enum Color {',
    "test.only('x', () => {});",
    "test('x', { only: true }, () => {});",
    "const path = '/home/anna/data';",
    "const path = '/tmp/data';",
    'registry=https://registry.examplejs.org/',
  ];
  const good = [
    '// any row may come first, and any[thing] goes',
    'const company = 1;',
    'type Enumerated = string;',
    "const route = '/collections/work/vectors';",
    "const url = root + '/home';",
    "import x from '../work/x.js';",
    'const { only } = options;',
  ];
  const isForbidden = (line: string): boolean =>
    FORBIDDEN.some(({ pattern }) => pattern.test(line));
  for (const line of bad) assert.ok(isForbidden(line), `expected to be forbidden: ${line}`);
  for (const line of good) assert.ok(!isForbidden(line), `expected to be allowed: ${line}`);

  assert.equal(complainAboutHeader('// Says what it is.\n\nimport a;\n'), undefined);
  assert.equal(complainAboutHeader('#!/usr/bin/env node\n// Says it.\n\nimport a;\n'), undefined);
  assert.match(complainAboutHeader('import a;\n') ?? '', /begins with "import a;"/);
  assert.match(complainAboutHeader(`${'// Line.\n'.repeat(6)}\nimport a;\n`) ?? '', /6 lines/);
});

function complainAboutHeader(text: string): string | undefined {
  const lines = text.replace(/^#!.*\n/, '').split('\n');
  const lineCount = lines.findIndex((line) => !line.startsWith('//'));
  if (lineCount === 0) return `expected a comment, but it begins with "${lines[0]}"`;
  // Scripts show how they are called after an empty comment line.
  const usage = lines.slice(0, lineCount).indexOf('//');
  const saying = usage === -1 ? lineCount : usage;
  if (saying > HEADER_LINES_MAX) {
    return `expected at most ${HEADER_LINES_MAX} lines of comment, found ${saying} lines`;
  }
  return undefined;
}

function listFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => folder !== '' || !SKIPPED.includes(name))
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
