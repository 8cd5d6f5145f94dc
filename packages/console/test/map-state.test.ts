import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FoundPath } from '@sagitta/client';
import { defaultColourPath } from '../src/views/map/column-colours.js';
import {
  draftErrors,
  type MapData,
  mapDraftOf,
  scaleComponents,
  withoutPoints,
} from '../src/views/map/map-state.js';

const request = { using: '', sample: 10, seed: 0, neighbors: 5, filter: undefined };
const data: MapData = {
  request,
  sequence: 1,
  ids: ['a', 'b', 'c'],
  components: Float32Array.of(0, 1, 2, 3, 4, 5),
  varianceRatios: [0.5, 0.2],
};

function foundPath(path: string, part: Partial<FoundPath>): FoundPath {
  const types = { null: 0, boolean: 0, number: 0, string: 10, array: 0, object: 0 };
  return { path, count: 10, types, distinct_count: 5, is_distinct_exact: true, ...part };
}

describe('the state of the map', () => {
  test('deleted points are removed from the projection and from the layout', () => {
    const positions = Float32Array.of(10, 11, 12, 13, 14, 15);
    const progress = { doneCount: 3, totalCount: 9, elapsedMs: 1 };
    const layout = { kind: 'running', positions, progress } as const;
    const after = withoutPoints({ kind: 'ready', data, layout }, new Set(['b']));
    assert.deepEqual(after.data.ids, ['a', 'c']);
    assert.deepEqual([...after.data.components], [0, 1, 4, 5]);
    assert.ok('positions' in after.layout);
    assert.deepEqual([...after.layout.positions], [10, 11, 14, 15]);
    assert.equal(after.layout.kind, 'stopped', 'its worker has the deleted points');
  });

  test('invalid numbers of a draft are reported', () => {
    const draft = mapDraftOf('any').get();
    assert.deepEqual(draftErrors(draft), {});
    const wrong = { ...draft, sampleText: '200001', seedText: '', neighborsText: '2.5' };
    assert.deepEqual(draftErrors(wrong), {
      sample: 'Expected a whole number from 1 to 200000.',
      seed: 'Expected a whole number from 0 to 4294967295.',
      neighbors: 'Expected a whole number from 2 to 30.',
    });
  });

  test('components are scaled to the extent of a layout', () => {
    assert.deepEqual([...scaleComponents(Float32Array.of(0.5, -1, 0, 0.25))], [5, -10, 0, 2.5]);
    assert.deepEqual([...scaleComponents(new Float32Array(2))], [0, 0]);
  });

  test('points are coloured by a path named like a category, or else by a common one with few values', () => {
    const rare = foundPath('rare', { count: 2 });
    const common = foundPath('common', {});
    const category = foundPath('meta.category', { count: 3 });
    const title = foundPath('title', { distinct_count: 1_000 });
    const same = foundPath('same', { distinct_count: 1 });
    assert.equal(defaultColourPath([rare, common, category, title, same]), 'meta.category');
    assert.equal(defaultColourPath([rare, common, title, same]), 'common');
    assert.equal(defaultColourPath([title, same]), '');
  });
});
