// Compares projections with principal components found by power iterations with deflation over a plain covariance, and
// neighbours with brute force.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Metric } from '../../../src/common/types.js';
import type { Database } from '../../../src/database/database.js';
import type { ProjectionRequest } from '../../../src/database/projection/projection.js';
import { dense } from '../../vector-columns.js';
import { batchOf, createRandom, openDatabase, testSeed, VALUE_METRICS } from '../harness.js';

interface Found {
  readonly varianceRatios: readonly number[];
  readonly chunkCounts: number[];
  readonly ids: string[];
  readonly coordinates: number[][];
  readonly neighbors: { readonly row: number; readonly distance: number }[][];
}

async function open(
  vectors: readonly (readonly number[])[],
  { metric = 'euclidean', segmentRowsMax = 64 }: { metric?: Metric; segmentRowsMax?: number } = {},
): Promise<Database> {
  const database = await openDatabase({ limits: { segmentRowsMax, projectionDimensionMax: 64 } });
  const dimension = vectors[0]?.length ?? 2;
  const vectorShapes = { '': { ...dense(dimension), metric } };
  const rest = { description: null, labels: {} };
  await database.createCollection({ id: 'c', vectors: vectorShapes, ...rest });
  const rows = vectors.map((values, i) => ({ id: `v${i}`, values, metadata: `{"n":${i}}` }));
  if (rows.length > 0) await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
  return database;
}

async function project(
  database: Database,
  request: Partial<ProjectionRequest> = {},
): Promise<Found> {
  const sample = { count: 1_000, seed: 0 };
  const whole = { sample, dimensions: 2, neighborCount: 0, ...request };
  const projection = await database.collection('c').project(whole);
  const { varianceRatios, chunks } = await projection.project();
  const found: Found = { varianceRatios, chunkCounts: [], ids: [], coordinates: [], neighbors: [] };
  const { dimensions } = whole;
  for await (const { count, ids, coordinates, neighbors } of chunks()) {
    found.chunkCounts.push(count);
    for (let i = 0; i < count; i++) {
      const id = ids.bytes.subarray(ids.offsets[i]!, ids.offsets[i + 1]!);
      found.ids.push(Buffer.from(id).toString());
      found.coordinates.push([...coordinates.subarray(i * dimensions, (i + 1) * dimensions)]);
      if (neighbors === null) continue;
      const { starts, rows, distances } = neighbors;
      const places = Array.from(rows.subarray(starts[i]!, starts[i + 1]!));
      found.neighbors.push(places.map((row, n) => ({ row, distance: distances[starts[i]! + n]! })));
    }
  }
  assert.equal(found.ids.length, projection.rowCount);
  assert.ok(found.coordinates.flat().every(Number.isFinite));
  assert.ok(varianceRatios.every((ratio) => ratio >= 0 && ratio <= 1));
  return found;
}

const dot = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const unit = (vector: readonly number[]) => {
  const length = Math.sqrt(dot(vector, vector));
  return vector.map((value) => value / length);
};

/** Coordinates and shares of the variance in plain float64. */
function bruteForce(vectors: readonly (readonly number[])[], dimensions: number) {
  const dimension = vectors[0]!.length;
  const mean = Array.from(
    { length: dimension },
    (_, j) => vectors.reduce((sum, vector) => sum + vector[j]!, 0) / vectors.length,
  );
  const centered = vectors.map((vector) => vector.map((value, j) => value - mean[j]!));
  const covariance = mean.map((_, i) =>
    mean.map((_, j) => centered.reduce((sum, row) => sum + row[i]! * row[j]!, 0)),
  );
  const trace = covariance.reduce((sum, row, i) => sum + row[i]!, 0);
  const components: number[][] = [];
  const ratios: number[] = [];
  for (let n = 0; n < Math.min(dimensions, dimension); n++) {
    let vector = unit(mean.map((_, j) => Math.cos(j * 7 + n)));
    for (let round = 0; round < 20_000; round++) {
      let next = covariance.map((row) => dot(row, vector));
      for (const other of components) {
        const along = dot(next, other);
        next = next.map((value, j) => value - along * other[j]!);
      }
      vector = unit(next);
    }
    const greatest = vector.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
    if (greatest < 0) vector = vector.map((value) => -value);
    components.push(vector);
    ratios.push(
      dot(
        vector,
        covariance.map((row) => dot(row, vector)),
      ) / trace,
    );
  }
  return { coordinates: centered.map((row) => components.map((axis) => dot(row, axis))), ratios };
}

function assertClose(found: readonly number[], expected: readonly number[], what: string): void {
  assert.equal(found.length, expected.length, what);
  for (const [i, value] of expected.entries()) {
    const allowed = 2e-5 * Math.max(1, Math.abs(value));
    assert.ok(
      Math.abs(found[i]! - value) <= allowed,
      `${what}: found ${found}, expected ${expected}`,
    );
  }
}

/** Each axis has half the spread of the previous one, in a randomly rotated frame. */
function spreadVectors(random: () => number, count: number, dimension: number): number[][] {
  const frame = Array.from({ length: dimension }, () =>
    unit(Array.from({ length: dimension }, () => random() - 0.5)),
  );
  return Array.from({ length: count }, () => {
    const vector = new Array<number>(dimension).fill(0.1);
    for (const [n, axis] of frame.entries()) {
      const along = ((random() - 0.5) * 8) / 2 ** n;
      for (let j = 0; j < dimension; j++) vector[j]! += along * axis[j]!;
    }
    return [...Float32Array.from(vector)];
  });
}

describe('a projection', () => {
  for (const metric of VALUE_METRICS) {
    it(`equals principal components by power iterations (${metric})`, async () => {
      const seed = testSeed();
      const random = createRandom(seed);
      for (const [count, dimension, dimensions] of [
        [200, 3, 2],
        [300, 5, 3],
        [130, 6, 4],
      ] as const) {
        const vectors = spreadVectors(random, count, dimension);
        const database = await open(vectors, { metric });
        const found = await project(database, { dimensions });
        const expected = bruteForce(metric === 'cosine' ? vectors.map(unit) : vectors, dimensions);
        assertClose(found.varianceRatios, expected.ratios, `seed ${seed}, ratios`);
        for (const [i, coordinates] of expected.coordinates.entries()) {
          assertClose(found.coordinates[i]!, coordinates, `seed ${seed}, row ${i}`);
        }
        await database.close();
      }
    });

    it(`has the nearest of each row within the sample (${metric})`, async () => {
      const random = createRandom(3);
      const vectors = spreadVectors(random, 150, 4);
      const database = await open(vectors, { metric });
      const request = { sample: { count: 60, seed: 9 }, filter: { n: { $gte: 20 } } };
      const { ids, neighbors } = await project(database, { ...request, neighborCount: 7 });
      assert.equal(ids.length, 60);
      const sampled = ids.map((id) => vectors[Number(id.slice(1))]!);
      const distanceOf = (a: readonly number[], b: readonly number[]) =>
        metric === 'cosine'
          ? 1 - dot(unit(a), unit(b))
          : Math.hypot(...a.map((value, j) => value - b[j]!));
      for (const [i, found] of neighbors.entries()) {
        const expected = sampled
          .map((other, row) => ({ row, distance: distanceOf(sampled[i]!, other) }))
          .filter(({ row }) => row !== i)
          .toSorted((a, b) => a.distance - b.distance)
          .slice(0, 7);
        assert.deepEqual(
          found.map(({ row }) => row),
          expected.map(({ row }) => row),
        );
        assertClose(
          found.map(({ distance }) => distance),
          expected.map(({ distance }) => distance),
          `row ${i}`,
        );
      }
      await database.close();
    });
  }

  it('has the same bits and chunks whatever the segments, and each time', async () => {
    const vectors = spreadVectors(createRandom(4), 700, 10);
    const [small, large] = await Promise.all([
      open(vectors, { segmentRowsMax: 16 }),
      open(vectors, { segmentRowsMax: 4_096 }),
    ]);
    const request = { dimensions: 64, neighborCount: 30, sample: { count: 500, seed: 1 } };
    const first = await project(small, request);
    // Chunks have 16 384 numbers each, regardless of the groups of the searches.
    assert.deepEqual(first.chunkCounts, [133, 133, 133, 101]);
    assert.deepEqual(await project(small, request), first);
    assert.deepEqual(await project(large, request), first);
    await Promise.all([small.close(), large.close()]);
  });

  it('is of fewer rows than dimensions, and zero beyond their rank', async () => {
    const database = await open([
      [1, 0, 0, 0, 5],
      [0, 2, 0, 0, 5],
      [0, 0, 1, 0, 5],
    ]);
    const { varianceRatios, coordinates } = await project(database, { dimensions: 4 });
    assert.ok(varianceRatios[1]! > 0.01);
    assert.deepEqual(varianceRatios.slice(2), [0, 0]);
    assert.ok(Math.abs(varianceRatios[0]! + varianceRatios[1]! - 1) < 1e-12);
    for (const row of coordinates) assert.deepEqual(row.slice(2), [0, 0]);
    await database.close();
  });

  it('of no row, of one and of equal ones is at the origin', async () => {
    for (const vectors of [[], [[3, 4]], Array.from({ length: 100 }, () => [3, 4])]) {
      const database = await open(vectors);
      const found = await project(database, { neighborCount: 2 });
      assert.deepEqual(found.varianceRatios, [0, 0]);
      assert.ok(found.coordinates.every((row) => row.every((value) => value === 0)));
      const neighborCount = Math.min(2, Math.max(0, vectors.length - 1));
      for (const [i, neighbors] of found.neighbors.entries()) {
        assert.equal(neighbors.length, neighborCount);
        assert.ok(neighbors.every(({ row, distance }) => row !== i && distance === 0));
      }
      await database.close();
    }
  });

  it('is finite for the greatest and the smallest float32, and far from the origin', async () => {
    const great = 3.4e38;
    const extremes = await open([
      [great, great, 1e-45],
      [-great, great, 0],
      [great, -great, -1e-45],
      [-great, -great, 1],
    ]);
    const { coordinates } = await project(extremes, { dimensions: 3, neighborCount: 3 });
    assert.ok(coordinates.some((row) => row.some((value) => Math.abs(value) > 1e38)));
    await extremes.close();
    const far = await open(Array.from({ length: 64 }, (_, i) => [1e6 + i, 1e6]));
    const along = await project(far);
    assert.deepEqual(
      along.coordinates.map(([x]) => x),
      Array.from({ length: 64 }, (_, i) => i - 31.5),
    );
    await far.close();
  });

  it('of vectors with one element has zeros in the other coordinate', async () => {
    const database = await open([[1], [2], [4]]);
    const { coordinates, varianceRatios } = await project(database);
    assertClose(varianceRatios, [1, 0], 'ratios');
    assertClose(coordinates.flat(), [-4 / 3, 0, -1 / 3, 0, 5 / 3, 0], 'coordinates');
    await database.close();
  });

  it('leaves out rows without the named vector', async () => {
    const database = await openDatabase({});
    await database.createCollection({
      id: 'c',
      vectors: { title: { ...dense(2), metric: 'dot' } },
      description: null,
      labels: {},
    });
    const batch = batchOf([1, 2, 3, 4].map((n) => ({ id: `v${n}`, values: [], metadata: '{}' })));
    await database.collection('c').write(batch, { mode: 'upsert' });
    for (const n of [2, 4]) {
      const vectors = new Map([['title', Float32Array.of(n, 0)]]);
      await database.collection('c').patch(`v${n}`, { vectors });
    }
    const { ids, coordinates } = await project(database, { using: 'title' });
    assert.deepEqual(ids.toSorted(), ['v2', 'v4']);
    assert.deepEqual(
      coordinates.map(([x]) => Math.abs(x!)),
      [1, 1],
    );
    await database.close();
  });

  it('refuses vectors that are too long or unknown, and ends with its signal', async () => {
    const database = await open([new Array<number>(65).fill(1)]);
    await assert.rejects(project(database), /at most 64 elements.*found 65/);
    await assert.rejects(project(database, { using: 'none' }), { code: 'invalid_request' });
    await database.close();
    const other = await open([[1, 2]]);
    const signal = AbortSignal.abort(new Error('gone'));
    const request = { sample: { count: 5, seed: 0 }, dimensions: 2, neighborCount: 1 };
    const projection = await other.collection('c').project(request, { signal });
    await assert.rejects(projection.project(), /gone/);
    await other.close();
  });
});
