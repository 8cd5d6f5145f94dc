// Checks that the lists in package.json and .dockerignore, which cannot be computed, agree with
// scripts/building/products.mjs.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

interface Product {
  readonly sources: readonly string[];
  readonly scripts: readonly string[];
  readonly needs?: readonly string[];
  readonly output?: string;
}

/** The compiled test is at dist/test. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const { PRODUCTS, inputsOf } = (await import(
  pathToFileURL(join(ROOT, 'scripts/building/products.mjs')).href
)) as { PRODUCTS: Readonly<Record<string, Product>>; inputsOf(name: string): readonly string[] };

test('the sources of every product and the products it needs exist', () => {
  for (const [name, { sources, scripts, needs = [] }] of Object.entries(PRODUCTS)) {
    for (const path of [...sources, ...scripts]) {
      assert.ok(existsSync(join(ROOT, path)), `${name} is made from ${path}, which does not exist`);
    }
    for (const needed of needs) assert.ok(needed in PRODUCTS, `${name} needs ${needed}`);
  }
});

test('package.json publishes the sources and the builds that the server needs', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  // npm always packs these.
  const implied = ['LICENSE', 'README.md', 'package.json'];
  const expected = [
    ...PRODUCTS.server!.sources.filter((path) => !implied.includes(path)),
    ...['app', 'console'].map((name) => PRODUCTS[name]!.output!),
    'build/prebuilt',
  ];
  // Some files of the sources are only for tests.
  const published = files.filter((pattern) => !pattern.startsWith('!'));
  assert.deepEqual(published.map((pattern) => pattern.split('/*')[0]).sort(), expected.sort());
});

test('.dockerignore includes the sources of the image but no packages, logs and builds', () => {
  const [first, ...rules] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  assert.equal(first, '*');
  const included = rules.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  const needed = new Set(inputsOf('image').map((path) => path.split('/')[0]!));
  for (const path of ['.dockerignore', 'Dockerfile', 'Dockerfile.cuda']) needed.delete(path);
  assert.deepEqual(included.sort(), [...needed].sort());
  for (const pattern of ['**/node_modules', '**/__pycache__', '**/*.log', 'packages/*/dist']) {
    assert.ok(rules.includes(pattern), pattern);
  }
});
