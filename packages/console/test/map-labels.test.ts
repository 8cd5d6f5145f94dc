import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AreaLabel, areaLabels } from '../src/views/map/area-labels.js';
import {
  denseAreas,
  densityGrid,
  GRID_CELLS,
  pointDensities,
  smooth,
} from '../src/views/map/density.js';
import { placeLabels } from '../src/views/map/label-places.js';
import { metadataTexts, PointTerms, termsOf } from '../src/views/map/point-terms.js';

/** Points in rows and columns around a centre. */
function block(x: number, y: number, side: number, step = 0.05): number[] {
  return Array.from({ length: side * side }, (_, i) => [
    x + (i % side) * step,
    y + Math.floor(i / side) * step,
  ]).flat();
}

describe('the density of points', () => {
  const dense = block(0, 0, 20, 0.01);
  const sparse = block(6, 6, 5, 0.4);
  const positions = Float32Array.from([...dense, ...sparse]);

  test('is higher where points are close together', () => {
    const densities = pointDensities(densityGrid(positions));
    const least = Math.min(...densities.subarray(0, 400));
    const most = Math.max(...densities.subarray(400));
    assert.ok(least > 4 * most, `${least} and ${most}`);
  });

  test('keeps the number of points when it is smoothed, apart from the edge', () => {
    const { counts } = densityGrid(positions);
    const sum = (values: Float32Array) => values.reduce((total, value) => total + value, 0);
    assert.equal(sum(counts), 425);
    assert.ok(Math.abs(sum(smooth(counts, 2)) - 425) < 100);
    assert.ok(smooth(counts, 8).every((value) => value >= 0));
  });

  test('is finite for no points, one point and equal points', () => {
    for (const few of [[], [3, 4], [3, 4, 3, 4]]) {
      const densities = pointDensities(densityGrid(Float32Array.from(few)));
      assert.equal(densities.length, few.length / 2);
      assert.ok(densities.every(Number.isFinite));
    }
  });

  test('has an area for each peak', () => {
    const density = new Float32Array(GRID_CELLS * GRID_CELLS);
    for (const [cell, value] of [
      [10 * GRID_CELLS + 10, 5],
      [10 * GRID_CELLS + 11, 3],
      [200 * GRID_CELLS + 50, 4],
    ] as const) {
      density[cell] = value;
    }
    const { areaOf, peaks } = denseAreas(density);
    assert.deepEqual(peaks, [10 * GRID_CELLS + 10, 200 * GRID_CELLS + 50]);
    assert.equal(areaOf[10 * GRID_CELLS + 11], 0);
    assert.equal(areaOf[0], -1);
  });
});

describe('the terms of a point', () => {
  test('are the words of texts, and short values as they are', () => {
    const texts = metadataTexts({
      pos: 'noun',
      category: 'noun.animal',
      gloss: 'A large dog, of the genus Canis',
      tags: ['x y', 'pets'],
      nested: { image: 'data:image/png;base64,xyz', page: 'https://example.org/a b' },
      year: 1990,
    });
    assert.deepEqual(
      [...termsOf(texts)],
      ['noun', 'noun.animal', 'large', 'dog', 'the', 'genus', 'canis', 'pets'],
    );
  });
});

describe('the labels of areas', () => {
  // Three blocks of 100 points: dogs, cats, and words without anything in common.
  const positions = Float32Array.from([
    ...block(0, 0, 10),
    ...block(10, 0, 10),
    ...block(5, 10, 10),
  ]);
  const grid = densityGrid(positions);
  const terms = new PointTerms(300);
  for (let point = 0; point < 300; point++) {
    const own =
      point < 100 ? 'barking dog' : point < 200 ? 'purring cat' : `thing${point} word${point}`;
    terms.set(point, termsOf([`${own} the`]));
  }
  const textsOf = (labels: readonly AreaLabel[]) =>
    labels.filter(({ zoomMin }) => zoomMin === 0).map(({ text }) => text);

  test('name what distinguishes them from the whole sample', () => {
    const found = textsOf(areaLabels(grid, terms, undefined));
    assert.deepEqual(found.sort(), ['barking · dog', 'purring · cat']);
  });

  test('are values of the colours only where these are concentrated', () => {
    const secondEvery = (point: number) => (point < 200 ? 3 : 6);
    const entries = Uint8Array.from({ length: 300 }, (_, point) =>
      point < 100 ? 0 : point % secondEvery(point) === 0 ? 1 : 2,
    );
    const names = new Map([
      [0, 'first'],
      [1, 'second'],
      [2, 'third'],
    ]);
    const labels = areaLabels(grid, terms, { entries, names });
    assert.deepEqual(textsOf(labels).sort(), ['first', 'purring · cat', 'third']);
    assert.equal(labels.find(({ text }) => text === 'third')!.entry, 2);
  });

  test('do not repeat a value that is not concentrated as a term', () => {
    const tagged = new PointTerms(300);
    for (let point = 0; point < 300; point++) {
      tagged.set(point, termsOf(point < 30 ? ['rare'] : []));
    }
    const entries = Uint8Array.from({ length: 300 }, (_, point) => (point < 30 ? 0 : 1));
    const names = new Map([[0, 'rare']]);
    assert.deepEqual(textsOf(areaLabels(grid, tagged, undefined)), ['rare']);
    assert.deepEqual(textsOf(areaLabels(grid, tagged, { entries, names })), []);
  });

  test('stay at a point of the area, and finer areas do not repeat the name of a coarser one', () => {
    const labels = areaLabels(grid, terms, undefined);
    const dogs = labels.filter(({ text }) => text.includes('dog'));
    assert.equal(dogs.length, 1);
    assert.ok(dogs[0]!.point < 100);
    assert.equal(dogs[0]!.count, 100);
  });
});

describe('the places of labels', () => {
  const at = [
    { x: 100, y: 100 },
    { x: 110, y: 105 },
    { x: 100, y: 140 },
    { x: 399, y: 100 },
    { x: -5, y: 10 },
  ];
  const view = {
    size: { width: 400, height: 200 },
    zoomFactor: 1,
    positionOf: (point: number) => at[point]!,
    hidden: new Set<number>(),
  };
  const label = (point: number, text: string, part: Partial<AreaLabel> = {}): AreaLabel => ({
    point,
    text,
    entry: undefined,
    count: 1,
    zoomMin: 0,
    ...part,
  });
  const shown = (labels: readonly AreaLabel[], part: Partial<typeof view> = {}) =>
    placeLabels(labels, { ...view, ...part }).map((placed) => placed.label.text);

  test('labels that would cover the label of a larger area are left out', () => {
    const labels = [
      label(0, 'small', { count: 2 }),
      label(1, 'large', { count: 9 }),
      label(2, 'below'),
    ];
    assert.deepEqual(shown(labels), ['large', 'below']);
  });

  test('more labels are shown when zoomed in, and none outside the view', () => {
    const labels = [label(0, 'coarse'), label(2, 'fine', { zoomMin: 3 }), label(4, 'outside')];
    assert.deepEqual(shown(labels), ['coarse']);
    assert.deepEqual(shown(labels, { zoomFactor: 3 }), ['coarse', 'fine']);
  });

  test('labels of hidden colours are left out, and those at the edge are moved inside', () => {
    const labels = [label(0, 'hidden', { entry: 4 }), label(3, 'at the edge')];
    const placed = placeLabels(labels, { ...view, hidden: new Set([4]) });
    assert.deepEqual(
      placed.map((one) => one.label.text),
      ['at the edge'],
    );
    assert.ok(placed[0]!.x < 370, `${placed[0]!.x}`);
  });
});
