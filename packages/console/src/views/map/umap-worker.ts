// Computes the layout in a worker and sends it as it converges. Terminating the worker stops it.

import type { NeighborGraph } from './fuzzy-edges.js';
import { fuzzyEdges } from './fuzzy-edges.js';
import { epochCountFor, UmapLayout } from './umap-layout.js';

export interface UmapJob {
  readonly graph: NeighborGraph;
  /** Row-major [pointCount, 2]. */
  readonly start: Float32Array;
  readonly seed: number;
}

export interface UmapUpdate {
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  readonly epoch: number;
  readonly epochCount: number;
}

/** The interval between updates: short enough for a fluent movement, and long enough to leave the page time to work. */
const UPDATE_MS = 80;

addEventListener('message', ({ data }: MessageEvent<UmapJob>) => {
  const { graph, start, seed } = data;
  const epochCount = epochCountFor(start.length / 2);
  const layout = new UmapLayout(fuzzyEdges(graph), start, { epochCount, seed });
  let sentMs = performance.now();
  while (!layout.isDone) {
    layout.runEpoch();
    const now = performance.now();
    if (now - sentMs < UPDATE_MS && !layout.isDone) continue;
    sentMs = now;
    const { epoch } = layout;
    const positions = layout.positions.slice();
    postMessage({ positions, epoch, epochCount } satisfies UmapUpdate, {
      transfer: [positions.buffer],
    });
  }
});
