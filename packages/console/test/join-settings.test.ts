import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CollectionRecord } from '@sagitta/client';
import { denseVectors } from '@sagitta/client';
import {
  type JoinDraft,
  joinableCollections,
  joinRequest,
  joinSettings,
} from '../src/views/join/join-settings.js';

function collection(id: string, shape: Partial<CollectionRecord>): CollectionRecord {
  return { id, labels: {}, ...shape } as CollectionRecord;
}

const texts = collection('texts', { dimension: 3, metric: 'cosine' });
const pictures = collection('pictures', {
  vectors: {
    tokens: { dimension: 3, metric: 'dot', multi: true },
    image: { dimension: 3, metric: 'euclidean' },
    small: { dimension: 2, metric: 'dot' },
  },
});
const others = collection('others', { dimension: 4, metric: 'dot' });
const [using] = denseVectors(texts);

function requestOf(draft: JoinDraft) {
  return joinRequest(pictures, joinSettings(using!, pictures, draft), draft);
}

describe('the settings of a join', () => {
  test('other collections with a dense vector of the same dimension can be joined', () => {
    const found = joinableCollections([texts, pictures, others], texts, using!);
    assert.deepEqual(
      found.map(({ id }) => id),
      ['pictures'],
    );
  });

  test('the vector and the metric default to those of the searched collection', () => {
    const request = { with: 'pictures', withUsing: 'image', topK: 1 };
    assert.deepEqual(requestOf({}), { ...request, metric: 'euclidean' });
    assert.deepEqual(requestOf({ metric: 'cosine' }), { ...request, metric: 'cosine' });
  });

  test('a number of matches, a minimum score or both are required, and must be valid', () => {
    assert.equal(requestOf({ topKText: '' }), undefined);
    assert.equal(requestOf({ topKText: '1.5' }), undefined);
    assert.equal(requestOf({ thresholdText: 'high' }), undefined);
    const { topK, scoreThreshold } = requestOf({ topKText: ' ', thresholdText: '0.5' })!;
    assert.deepEqual([topK, scoreThreshold], [undefined, 0.5]);
  });
});
