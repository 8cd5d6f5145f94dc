// The command line of the engine bench and its two parameter sets. Smoke only checks that every case
// works; full produces the figures of docs/performance.md.

import { parseArgs } from 'node:util';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { ENGINE_NAMES, type EngineName } from '../../src/engine/core/engine.js';
import type { VectorSource } from './vectors.js';

/** Vectors of texts come first: generated ones are easier or harder than any that people have. */
export const DATA_NAMES = [
  'sentences',
  'mixed sentences',
  'words',
  'passages',
  'WordNet',
  'noise',
  'clusters',
  'long clusters',
  'large clusters',
] as const;
export type DataName = (typeof DATA_NAMES)[number];

export interface Parameters {
  readonly data: Readonly<Record<DataName, VectorSource>>;
  /** Smoke uses smaller blocks than the database, so that results come from several of them. */
  readonly blockRowsMax: number;
  /** Distinct queries of a data set, fewer if it is small, and the largest batch. */
  readonly queryCount: number;
  /** Queries whose results are compared with brute force; each costs a scan in JavaScript. */
  readonly checkedCount: number;
  /** Minimum queries per round, so that single queries give enough samples for a p99. */
  readonly roundQueriesMin: number;
  readonly roundsMin: number;
  readonly secondsMin: number;
  /** Peaks are measured again after this many cases, since the speed of a shared machine drifts. */
  readonly casesPerPeak: number;
}

export interface Options {
  readonly isFull: boolean;
  readonly parameters: Parameters;
  readonly engine: 'auto' | EngineName;
  /** Only cases whose name contains this; null for all. */
  readonly only: string | null;
  readonly hasPeers: boolean;
  /** Graph indexes take minutes to build. */
  readonly hasGraphPeers: boolean;
  /** Output file of the report; null for none. */
  readonly outFile: string | null;
}

const SMOKE: Parameters = {
  data: {
    sentences: real('bench/data/sentences.npy.gz', 3_000, 512),
    'mixed sentences': mixed('bench/data/sentences.npy.gz', 8_000, 512),
    words: real('bench/data/words.npy.gz', 3_000, 100),
    passages: mixed('bench/data/passages.npy.gz', 2_000, 384),
    WordNet: real('build/vectors/wordnet.npy', 3_000, 768),
    noise: { kind: 'noise', shape: { rowCount: 2_000, dimension: 64 } },
    clusters: clusters(4_000, 64),
    'long clusters': clusters(8_000, 32),
    'large clusters': clusters(4_000, 64),
  },
  blockRowsMax: 1_500,
  queryCount: 1_000,
  checkedCount: 3,
  roundQueriesMin: 16,
  roundsMin: 2,
  secondsMin: 0,
  casesPerPeak: 100,
};

const FULL: Parameters = {
  data: {
    sentences: real('build/vectors/sentences.npy', 116_659, 512),
    'mixed sentences': mixed('build/vectors/sentences.npy', 1_000_000, 512),
    words: real('build/vectors/words.npy', 340_479, 100),
    passages: mixed('build/vectors/passages.npy', 100_000, 384),
    WordNet: real('build/vectors/wordnet.npy', 116_000, 768),
    noise: { kind: 'noise', shape: { rowCount: 100_000, dimension: 768 } },
    clusters: clusters(100_000, 768),
    'long clusters': clusters(1_000_000, 128),
    'large clusters': clusters(1_000_000, 768),
  },
  blockRowsMax: DEFAULT_LIMITS.segmentRowsMax,
  queryCount: 1_000,
  checkedCount: 8,
  roundQueriesMin: 128,
  roundsMin: 5,
  secondsMin: 1,
  casesPerPeak: 4,
};

function clusters(rowCount: number, dimension: number): VectorSource {
  return { kind: 'clusters', shape: { rowCount, dimension } };
}

function real(file: string, rowCount: number, dimension: number): VectorSource {
  return { kind: 'real', file, shape: { rowCount, dimension }, isMixed: false };
}

function mixed(file: string, rowCount: number, dimension: number): VectorSource {
  return { kind: 'real', file, shape: { rowCount, dimension }, isMixed: true };
}

/** Throws when an option is unknown or its value is invalid. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    allowNegative: true,
    options: {
      full: { type: 'boolean', default: false },
      engine: { type: 'string', default: 'auto' },
      only: { type: 'string' },
      peers: { type: 'boolean' },
      'graph-peers': { type: 'boolean' },
      out: { type: 'string' },
    },
  });
  const hasPeers = values.peers ?? values.full;
  return {
    isFull: values.full,
    parameters: values.full ? FULL : SMOKE,
    engine: readEngine(values.engine),
    only: values.only ?? null,
    hasPeers,
    hasGraphPeers: hasPeers && (values['graph-peers'] ?? true),
    outFile: values.out ?? null,
  };
}

function readEngine(name: string): 'auto' | EngineName {
  const names = ['auto', ...ENGINE_NAMES] as const;
  const found = names.find((known) => known === name);
  if (found === undefined) {
    throw new Error(`--engine: expected one of ${names.join(', ')}, found ${JSON.stringify(name)}`);
  }
  return found;
}
