import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionRecord } from '../src/client.js';
import { denseVectors, vectorsOf } from '../src/collection-vectors.js';

const COLLECTION = {
  dimension: 4,
  metric: 'dot',
  vectors: {
    7: { dimension: 2, metric: 'cosine' },
    tokens: { dimension: 3, metric: 'dot', multi: true },
  },
  sparse_vectors: { words: {} },
} as unknown as CollectionRecord;

test('the unnamed vector is listed first, sparse vectors last', () => {
  assert.deepEqual(vectorsOf(COLLECTION), [
    { name: '', kind: 'dense', dimension: 4, metric: 'dot' },
    { name: '7', kind: 'dense', dimension: 2, metric: 'cosine' },
    { name: 'tokens', kind: 'multi', dimension: 3, metric: 'dot' },
    { name: 'words', kind: 'sparse', metric: 'dot' },
  ]);
});

test('multi-vectors and sparse vectors are not dense', () => {
  const names = denseVectors(COLLECTION).map(({ name }) => name);
  assert.deepEqual(names, ['', '7']);
});
