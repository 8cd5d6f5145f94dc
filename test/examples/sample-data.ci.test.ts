// The sample data of the repository: it is complete, its neighbours are exact, and a library other than the one that
// wrote it can read it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { type Table, tableFromIPC, type Vector } from 'apache-arrow';
import type { Metric } from '../../src/common/types.js';

const DATA = fileURLToPath(new URL('../../../examples/data', import.meta.url));
const BYTES_MAX = 10_000_000;
const DIMENSION = 256;
const NEIGHBOUR_COUNT = 20;

const senses = tableFromIPC(readFileSync(join(DATA, 'wordnet.arrow')));
const queries = tableFromIPC(readFileSync(join(DATA, 'wordnet-queries.arrow')));

test('the sample data takes at most 10 MB', () => {
  const sizes = readdirSync(DATA).map((name) => statSync(join(DATA, name)).size);
  const byteCount = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(byteCount <= BYTES_MAX, `found ${byteCount} bytes`);
});

test('the senses are unit vectors of dimension 256 with metadata', () => {
  assert.deepEqual(
    senses.schema.fields.map(({ name }) => name),
    ['id', 'values', 'lemma', 'words', 'pos', 'category', 'word_count', 'pointers', 'gloss'],
  );
  assert.equal(senses.numRows, 4_200);
  assert.equal(new Set(textsOf(senses, 'id')).size, senses.numRows);
  for (const vector of vectorsOf(senses)) {
    assert.equal(vector.length, DIMENSION);
    assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-6);
  }
  assert.equal(
    senses.schema.fields.reduce((sum, field) => sum + senses.getChild(field.name)!.nullCount, 0),
    0,
  );
});

test('the senses include every animal, food and verb', () => {
  const categories = textsOf(senses, 'category');
  const count = (test: (category: string) => boolean): number => categories.filter(test).length;
  assert.equal(
    count((category) => category === 'noun.animal'),
    643,
  );
  assert.equal(
    count((category) => category === 'noun.food'),
    225,
  );
  assert.equal(
    count((category) => category.startsWith('verb.')),
    1_168,
  );
  const lemmas = textsOf(senses, 'lemma');
  const lemmaOf = new Map(textsOf(senses, 'id').map((id, row) => [id, lemmas[row]]));
  assert.equal(lemmaOf.get('n02069974'), 'Atlantic bottlenose dolphin');
  assert.equal(lemmaOf.get('n02070624'), 'harbor porpoise');
});

const answers: readonly [name: string, metric: Metric, isVerbOnly: boolean][] = [
  ['cosine', 'cosine', false],
  ['dot', 'dot', false],
  ['euclidean_sq_neg', 'euclidean', false],
  ['cosine_verb', 'cosine', true],
];
for (const [name, metric, isVerbOnly] of answers) {
  test(`the neighbours ${name} are exact and in order, to the last bit of each score`, () => {
    const found = nearest(metric, isVerbOnly);
    vectorsOf(queries).forEach((query, at) => {
      const expected = found(query);
      assert.deepEqual(
        listAt(queries, `${name}_ids`, at),
        expected.map(({ id }) => id),
      );
      assert.deepEqual(
        listAt(queries, `${name}_scores`, at),
        expected.map(({ score }) => score),
      );
    });
  });
}

test('the digits are 1 797 vectors in the API format', () => {
  const lines = gunzipSync(readFileSync(join(DATA, 'digits.jsonl.gz')))
    .toString()
    .trimEnd()
    .split('\n');
  assert.equal(lines.length, 1_797);
  const labels = new Set<unknown>();
  for (const line of lines) {
    const row = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual(Object.keys(row), ['id', 'values', 'metadata']);
    assert.equal((row.values as number[]).length, 64);
    labels.add((row.metadata as Record<string, unknown>).label);
  }
  assert.equal(labels.size, 10);
});

/** Brute-force search, ordered by the contract's score in float64 and then by id. */
function nearest(metric: Metric, isVerbOnly: boolean) {
  const ids = textsOf(senses, 'id');
  const isVerb = textsOf(senses, 'pos').map((pos) => pos === 'verb');
  const rows = vectorsOf(senses);
  const squares = rows.map((row) => sumOfProducts(row, row));
  return (query: Float32Array) => {
    const square = sumOfProducts(query, query);
    return rows
      .map((row, at) => ({
        id: ids[at]!,
        score: scoreOf(metric, sumOfProducts(query, row), square, squares[at]!),
        isEligible: !isVerbOnly || isVerb[at]!,
      }))
      .filter(({ isEligible }) => isEligible)
      .sort((left, right) => right.score - left.score || (left.id < right.id ? -1 : 1))
      .slice(0, NEIGHBOUR_COUNT);
  };
}

function scoreOf(metric: Metric, product: number, querySquare: number, rowSquare: number): number {
  switch (metric) {
    case 'dot':
      return product;
    case 'cosine':
      return Math.min(1, Math.max(-1, product / (Math.sqrt(querySquare) * Math.sqrt(rowSquare))));
    case 'euclidean':
    case 'hamming':
      return 0 - Math.max(0, querySquare - 2 * product + rowSquare);
    case 'jaccard':
      return product / (querySquare - product + rowSquare) || 0;
  }
}

/** Sums in the server's order: eight lanes by index modulo 8, folded in halves. */
function sumOfProducts(left: Float32Array, right: Float32Array): number {
  const lanes = new Float64Array(8);
  for (let at = 0; at < left.length; at++) lanes[at & 7]! += left[at]! * right[at]!;
  for (const half of [4, 2, 1]) {
    for (let at = 0; at < half; at++) lanes[at]! += lanes[at + half]!;
  }
  return lanes[0]!;
}

function textsOf(table: Table, column: string): string[] {
  return [...(table.getChild(column) as Vector)].map(String);
}

function vectorsOf(table: Table): Float32Array[] {
  return [...(table.getChild('values') as Vector)].map((row: Vector) =>
    Float32Array.from(row.toArray() as Float32Array),
  );
}

function listAt(table: Table, column: string, row: number): unknown[] {
  return [...(table.getChild(column)!.get(row) as Vector)];
}
