// Types of the part of the usearch package that the bench uses.

import { loadPackage } from './peer.js';

interface Matches {
  readonly keys: BigUint64Array;
}

interface GraphOptions {
  readonly dimensions: number;
  readonly metric: 'ip';
  readonly quantization: 'f32';
  readonly connectivity: number;
  readonly expansion_add: number;
  readonly expansion_search: number;
  readonly multi: boolean;
}

export interface Graph {
  add(keys: BigUint64Array, vectors: Float32Array, threadCount: number): void;
  search(vectors: Float32Array, k: number, threadCount: number): Matches;
  save(path: string): void;
  load(path: string): void;
}

interface Usearch {
  readonly Index: new (options: GraphOptions) => Graph;
  exactSearch(
    rows: Float32Array,
    queries: Float32Array,
    dimension: number,
    k: number,
    metric: 'ip',
    threadCount: number,
  ): Matches;
}

export const { module: usearch, version } = loadPackage<Usearch>('usearch');
