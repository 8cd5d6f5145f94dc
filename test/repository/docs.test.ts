// Checks that the links in the documents lead to files, and that every setting, path and error code that they name
// exists. Python programs are searched for settings, too: their own tests run only after one of them has changed.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ERROR_TITLES } from '../../src/common/errors.js';
import { describeSettings } from '../../src/platform/config.js';
import { assertAnswer, ROOT } from './shell-examples.js';

/** A file or folder of the repository. The match ends before an asterisk, as in `src/*.ts`. */
const SOURCE_PATH = /(?<![\w./-])(?:src|test|scripts|kernels|bench|docs|examples)\/[\w./-]*\w/g;

test('the program in the README is the one in examples/', async () => {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  const program = await readFile(join(ROOT, 'examples/first-query.ts'), 'utf8');
  const [, shown] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  assert.equal(shown, program.slice(program.indexOf('import ')));
});

test('every link between documents leads to a file', async () => {
  const broken: string[] = [];
  for (const path of await documents()) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [, target] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target!)) continue;
      if (!existsSync(join(ROOT, dirname(path), target!))) broken.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});

test('every source path that a document names exists', async () => {
  const missing: string[] = [];
  for (const path of await documents()) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [name] of text.matchAll(SOURCE_PATH)) {
      if (!existsSync(join(ROOT, name))) missing.push(`${path}: ${name}`);
    }
  }
  assert.deepEqual(missing, []);
});

test('every decision record states its context, decision and consequences', async () => {
  const folder = 'docs/decisions';
  const overview = await readFile(join(ROOT, folder, 'README.md'), 'utf8');
  const areas = (await readdir(join(ROOT, folder))).filter((name) => name !== 'README.md');
  for (const area of areas) {
    assert.ok(
      overview.includes(`](${area})`),
      `expected ${area} in ${folder}/README.md, found none`,
    );
    const [, ...records] = (await readFile(join(ROOT, folder, area), 'utf8')).split(/^## /m);
    assert.ok(records.length > 0, area);
    for (const record of records) {
      const items = [...record.matchAll(/^- \*\*(\w+)\.\*\* \S/gm)].map(([, item]) => item);
      const heading = `${area}: ${record.slice(0, record.indexOf('\n'))}`;
      assert.deepEqual(items, ['Context', 'Decision', 'Consequences'], heading);
    }
  }
});

test('every setting that a document or a Python program names exists', async () => {
  const known = new Set(
    describeSettings().flatMap(({ variable, fileVariable }) => [
      variable,
      fileVariable ?? variable,
    ]),
  );
  for (const others of ['SAGITTA_URL', 'SAGITTA_API_KEY', 'SAGITTA_BENCH_PYTHON'])
    known.add(others);
  const unknown: string[] = [];
  const programs = await filesIn('python', '.py');
  for (const path of [...(await documents()), ...programs, 'Dockerfile.cuda']) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [name] of text.matchAll(/\bSAGITTA_[A-Z][A-Z_]*[A-Z]\b/g)) {
      if (!known.has(name) && !name.startsWith('SAGITTA_TEST_')) unknown.push(`${path}: ${name}`);
    }
  }
  assert.deepEqual(unknown, []);
});

test('every error code in the table of the guide exists', async () => {
  const guide = await readFile(join(ROOT, 'docs/api-guide.md'), 'utf8');
  const table = guide.slice(guide.indexOf('| status | codes'));
  const codes = [...table.matchAll(/`([a-z]+(?:_[a-z]+)+|[a-z]+)`/g)].map(([, code]) => code!);
  assert.ok(codes.length > 10);
  assert.deepEqual(
    codes.filter((code) => !(code in ERROR_TITLES)),
    [],
  );
});

test('values marked as changing are left out of comparisons', () => {
  const json = (text: string) => ({ language: 'json', text });
  assertAnswer('', '{"a":[1,{"b":"xyz"}]}', json('{"a": [1, {"b": "x…"}]}'));
  assertAnswer('', '{"a":{"b":1},"c":2}', json('{"a": "…", "c": 2}'));
  assertAnswer('', '[0.66869473]', json('[0.6686946]'));
  assertAnswer('', 'one  two\nthree\n', { language: 'text', text: 'one …\nthree\n' });
  for (const [answer, expected] of [
    ['{"a":2}', '{"a": 1}'],
    ['{"a":1,"b":2}', '{"a": 1}'],
    ['{"a":1}', '{"a": 1, "b": "…"}'],
    ['{"a":"yx"}', '{"a": "x…"}'],
    ['[1,2]', '[1]'],
    ['[0.668694]', '[0.668695]'],
  ] as const) {
    assert.throws(() => assertAnswer('', answer, json(expected)), `${answer} is ${expected}`);
  }
  assert.throws(() => assertAnswer('', 'two\n', { language: 'text', text: 'one\n' }));
});

/** Every Markdown file that belongs to the repository. */
async function documents(): Promise<string[]> {
  const atRoot = (await readdir(ROOT)).filter((name) => name.endsWith('.md'));
  const folders = ['docs', 'examples', 'kernels', 'src', 'test'];
  const below = await Promise.all(folders.map((folder) => filesIn(folder, '.md')));
  return [...atRoot, ...below.flat()];
}

/** The paths of the files in a folder and its subfolders whose names end with `ending`. */
async function filesIn(folder: string, ending: string): Promise<string[]> {
  const names = await readdir(join(ROOT, folder), { recursive: true });
  const paths = names.filter((name) => name.endsWith(ending)).map((name) => `${folder}/${name}`);
  return paths.filter((path) => !/node_modules|\/\.?venv\//.test(path));
}
