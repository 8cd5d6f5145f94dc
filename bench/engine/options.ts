// What the command line of the engine bench may say, and how large its two sizes are. Smoke proves
// that every case works and claims nothing; full is what docs/performance.md quotes.

import { parseArgs } from 'node:util';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { ENGINE_NAMES, type EngineName } from '../../src/engine/core/engine.js';

/** `wide` is bound by reading rows, `long` has the most rows. */
export const DATA_NAMES = ['wide', 'long'] as const;
export type DataName = (typeof DATA_NAMES)[number];

export interface Shape {
  readonly rowCount: number;
  readonly dimension: number;
}

export interface Parameters {
  readonly data: Readonly<Record<DataName, Shape>>;
  /** Smoke cuts smaller blocks than the database, so that answers come from several of them. */
  readonly blockRowsMax: number;
  /** Distinct queries of a data set, and the largest batch. */
  readonly queryCount: number;
  /** Queries whose answers are compared with brute force: each costs a scan in JavaScript. */
  readonly checkedCount: number;
  /** Queries that a round has at least, so that one at a time gives enough samples for a p99. */
  readonly roundQueriesMin: number;
  readonly roundsMin: number;
  readonly secondsMin: number;
  /** Peaks are measured anew after this many cases: the machine is shared and drifts. */
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
  /** Where the Markdown goes; null for the terminal alone. */
  readonly outFile: string | null;
}

const SMOKE: Parameters = {
  data: {
    wide: { rowCount: 4_000, dimension: 64 },
    long: { rowCount: 8_000, dimension: 32 },
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
    wide: { rowCount: 100_000, dimension: 768 },
    long: { rowCount: 1_000_000, dimension: 128 },
  },
  blockRowsMax: DEFAULT_LIMITS.segmentRowsMax,
  queryCount: 1_000,
  checkedCount: 8,
  roundQueriesMin: 128,
  roundsMin: 5,
  secondsMin: 1,
  casesPerPeak: 4,
};

/** Throws when an option is unknown or its value is not accepted. */
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
