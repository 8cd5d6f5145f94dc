// The weighted graph that UMAP lays out, from the nearest neighbours of each point (McInnes, Healy,
// Melville: UMAP, 2018, section 3.1). A weight says how certain the connection of two points is.

/** The neighbours of point i, without itself, are at `starts[i]..starts[i + 1]`, nearest first. */
export interface NeighborGraph {
  /** [pointCount + 1] */
  readonly starts: Uint32Array;
  readonly neighbors: Uint32Array;
  readonly distances: Float32Array;
}

/** Each pair of connected points once, ordered by head. */
export interface FuzzyEdges {
  readonly heads: Uint32Array;
  readonly tails: Uint32Array;
  /** In (0, 1]. */
  readonly weights: Float32Array;
}

const BISECTION_STEPS = 40;
/** A smaller deviation of the sum of weights from its target makes no visible difference. */
const TOLERANCE = 1e-4;
/** The minimum radius as a share of the mean distance, which avoids a division by 0 for equal points. */
const RADIUS_SHARE_MIN = 1e-3;

export function fuzzyEdges(graph: NeighborGraph): FuzzyEdges {
  return unite(graph, directedWeights(graph));
}

/** The weight of each neighbour: 1 for the nearest, falling with the distance relative to the point's radius. */
function directedWeights({ starts, distances }: NeighborGraph): Float32Array {
  const weights = new Float32Array(distances.length);
  for (let point = 0; point + 1 < starts.length; point++) {
    const [start, end] = [starts[point]!, starts[point + 1]!];
    const nearest = nearestPositive(distances, start, end);
    const radius = radiusOf(distances, start, end, nearest);
    for (let at = start; at < end; at++) {
      weights[at] = Math.exp(-Math.max(0, distances[at]! - nearest) / radius);
    }
  }
  return weights;
}

function nearestPositive(distances: Float32Array, start: number, end: number): number {
  for (let at = start; at < end; at++) if (distances[at]! > 0) return distances[at]!;
  return 0;
}

/** The radius with which the weights of a point's k neighbours add up to log2(k). */
function radiusOf(distances: Float32Array, start: number, end: number, nearest: number): number {
  const target = Math.log2(end - start);
  let [low, high, radius] = [0, Number.POSITIVE_INFINITY, 1];
  for (let step = 0; step < BISECTION_STEPS; step++) {
    let sum = 0;
    for (let at = start; at < end; at++) {
      sum += Math.exp(-Math.max(0, distances[at]! - nearest) / radius);
    }
    if (Math.abs(sum - target) < TOLERANCE) break;
    if (sum > target) high = radius;
    else low = radius;
    radius = high === Number.POSITIVE_INFINITY ? radius * 2 : (low + high) / 2;
  }
  const mean = meanOf(distances, start, end);
  return Math.max(radius, RADIUS_SHARE_MIN * mean, Number.MIN_VALUE);
}

function meanOf(values: Float32Array, start: number, end: number): number {
  let sum = 0;
  for (let at = start; at < end; at++) sum += values[at]!;
  return end > start ? sum / (end - start) : 0;
}

/** The fuzzy union of the edge and its reverse: a + b - a·b. */
function unite({ starts, neighbors }: NeighborGraph, directed: Float32Array): FuzzyEdges {
  const heads = new Uint32Array(neighbors.length);
  const tails = new Uint32Array(neighbors.length);
  const weights = new Float32Array(neighbors.length);
  let count = 0;
  for (let head = 0; head + 1 < starts.length; head++) {
    for (let at = starts[head]!; at < starts[head + 1]!; at++) {
      const tail = neighbors[at]!;
      const reverse = neighbors.subarray(starts[tail]!, starts[tail + 1]!).indexOf(head);
      // If both points have the edge, the point with the lower number adds it.
      if (reverse >= 0 && tail < head) continue;
      const [a, b] = [directed[at]!, reverse < 0 ? 0 : directed[starts[tail]! + reverse]!];
      heads[count] = head;
      tails[count] = tail;
      weights[count++] = a + b - a * b;
    }
  }
  return {
    heads: heads.subarray(0, count),
    tails: tails.subarray(0, count),
    weights: weights.subarray(0, count),
  };
}
