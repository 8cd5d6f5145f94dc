import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRandom } from '../../../src/tools/selftest/blocks.js';
import { fuzzyEdges, type NeighborGraph } from '../src/views/map/fuzzy-edges.js';
import { epochCountFor, UmapLayout } from '../src/views/map/umap-layout.js';

const DIMENSION = 8;
const CLUSTERS = 6;
const PER_CLUSTER = 60;

/** Gaussian clusters, one after another, and the exact neighbours of every point. */
function sample(k: number): { points: number[][]; graph: NeighborGraph } {
  const random = createRandom(7);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const points: number[][] = [];
  for (let cluster = 0; cluster < CLUSTERS; cluster++) {
    const centre = Array.from({ length: DIMENSION }, () => normal() * 5);
    for (let i = 0; i < PER_CLUSTER; i++) points.push(centre.map((value) => value + normal()));
  }
  return { points, graph: graphOf(points, k) };
}

function graphOf(points: readonly (readonly number[])[], k: number): NeighborGraph {
  const found = points.map((point, at) => nearest(points, point, at, k));
  return {
    starts: Uint32Array.from({ length: points.length + 1 }, (_, point) => point * k),
    neighbors: Uint32Array.from(found.flat().map(({ at }) => at)),
    distances: Float32Array.from(found.flat().map(({ distance }) => distance)),
  };
}

function nearest(
  points: readonly (readonly number[])[],
  point: readonly number[],
  own: number,
  k: number,
) {
  return points
    .map((other, at) => ({ at, distance: Math.hypot(...other.map((v, i) => v - point[i]!)) }))
    .filter(({ at }) => at !== own)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, k);
}

function pairs(positions: Float32Array): number[][] {
  return Array.from({ length: positions.length / 2 }, (_, i) => [
    positions[2 * i]!,
    positions[2 * i + 1]!,
  ]);
}

describe('the graph of UMAP', () => {
  test('contains each pair once, with the weight 1 for nearest neighbours', () => {
    const graph = {
      starts: Uint32Array.of(0, 2, 4, 6),
      neighbors: Uint32Array.of(1, 2, 0, 2, 1, 0),
      distances: Float32Array.of(1, 3, 1, 2, 2, 3),
    };
    const { heads, tails, weights } = fuzzyEdges(graph);
    const edges = [...heads].map((head, at) => `${head}-${tails[at]}`);
    assert.deepEqual(edges, ['0-1', '0-2', '1-2']);
    assert.equal(weights[0], 1);
    assert.equal(weights[2], 1, '1 is the nearest of 2, whatever 1 says');
    assert.ok(weights[1]! > 0 && weights[1]! < 1);
  });

  test('the weights of a point with k neighbours add up to log2(k) before they are united', () => {
    // The neighbours have no neighbours of their own, so the union changes nothing.
    const count = 8;
    const graph = {
      starts: Uint32Array.from({ length: count + 2 }, (_, point) => (point === 0 ? 0 : count)),
      neighbors: Uint32Array.from({ length: count }, (_, at) => at + 1),
      distances: Float32Array.from({ length: count }, (_, at) => 1 + at ** 2),
    };
    const { weights } = fuzzyEdges(graph);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    assert.ok(Math.abs(sum - Math.log2(count)) < 0.001, `found ${sum}`);
  });

  test('is finite for equal points and for points without neighbours', () => {
    const graph = {
      starts: Uint32Array.of(0, 2, 4, 6, 6),
      neighbors: Uint32Array.of(1, 2, 0, 2, 0, 1),
      distances: new Float32Array(6),
    };
    const { weights } = fuzzyEdges(graph);
    assert.equal(weights.length, 3);
    assert.ok(weights.every((weight) => weight > 0 && weight <= 1));
  });
});

describe('the layout', () => {
  const { points, graph } = sample(12);
  const edges = fuzzyEdges(graph);
  const layOut = (start: Float32Array, seed: number) => {
    const layout = new UmapLayout(edges, start, { epochCount: 200, seed });
    while (!layout.isDone) layout.runEpoch();
    return layout.positions;
  };
  const start = Float32Array.from(points.flatMap((point) => [point[0]!, point[1]!]));

  test('keeps clusters together and apart', () => {
    const placed = pairs(layOut(start, 1));
    let sameCount = 0;
    for (const [at, position] of placed.entries()) {
      for (const found of nearest(placed, position, at, 10)) {
        if (Math.floor(found.at / PER_CLUSTER) === Math.floor(at / PER_CLUSTER)) sameCount++;
      }
    }
    const share = sameCount / (placed.length * 10);
    assert.ok(share > 0.98, `${share} of the neighbours in the layout are in the same cluster`);
  });

  test('keeps clusters together even if all points start at the same position', () => {
    const positions = layOut(new Float32Array(points.length * 2), 1);
    assert.ok(positions.every(Number.isFinite));
    const placed = pairs(positions);
    const same = placed.filter((position, at) => {
      const [found] = nearest(placed, position, at, 1);
      return Math.floor(found!.at / PER_CLUSTER) === Math.floor(at / PER_CLUSTER);
    });
    assert.ok(same.length > 0.98 * placed.length, `${same.length} of ${placed.length}`);
  });

  test('is the same for the same seed, and different for another seed', () => {
    assert.deepEqual(layOut(start, 1), layOut(start, 1));
    assert.notDeepEqual(layOut(start, 1), layOut(start, 2));
  });

  test('takes fewer epochs for many points', () => {
    assert.ok(epochCountFor(200_000) < epochCountFor(1_000));
  });
});
