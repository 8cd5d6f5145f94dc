// What the bench asks of a peer and what the peer says: one JSON file in, one line of JSON out. For
// peers that are Node packages, also how they read it, load their package and are timed.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Metric } from '../../src/common/types.js';
import { ROOT } from '../engine/machine.js';
import { type Timing, timeCalls } from '../engine/timing.js';

export interface PeerCase {
  readonly name: string;
  readonly metric: Metric;
  /** Queries in one call. */
  readonly batchCount: number;
  /** The true rows of every query, best first: for choosing how wide a graph is searched. */
  readonly truth: readonly (readonly number[])[];
}

export interface PeerRequest {
  /** Holds `rows.f32` and `queries.f32`: row-major float32, unit vectors, as the machine orders bytes. */
  readonly folder: string;
  readonly rowCount: number;
  readonly dimension: number;
  readonly queryCount: number;
  readonly k: number;
  readonly threadCount: number;
  readonly roundQueriesMin: number;
  readonly roundsMin: number;
  readonly secondsMin: number;
  readonly cases: readonly PeerCase[];
}

export interface PeerAnswer {
  readonly name: string;
  readonly timing: Timing;
  /** How it was done, for the table. */
  readonly note: string;
  /** Rows of the first queries, best first; not timed. */
  readonly rows: readonly (readonly number[])[];
}

export interface PeerReply {
  readonly version: string;
  readonly answers: readonly PeerAnswer[];
}

export interface PeerData {
  /** [rowCount, dimension] */
  readonly rows: Float32Array;
  /** [queryCount, dimension] */
  readonly queries: Float32Array;
}

/** Answers a call: the rows of the queries from..from + count, best first, as the package gives them. */
export type PeerSearch<Found> = (from: number, count: number) => Found | Promise<Found>;

export function readRequest(): PeerRequest {
  return JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as PeerRequest;
}

export function readData({ folder, rowCount, dimension, queryCount }: PeerRequest): PeerData {
  return {
    rows: readFloats(join(folder, 'rows.f32'), rowCount * dimension),
    queries: readFloats(join(folder, 'queries.f32'), queryCount * dimension),
  };
}

/** Peers are no dependencies of the project: they are installed by bench/peers/install. */
const requirePeer = createRequire(join(ROOT, 'build', 'peers', 'package.json'));

/** `Module` says what the bench uses of the package. */
export function loadPackage<Module>(name: string): { module: Module; version: string } {
  const { version } = requirePeer(
    join(ROOT, 'build', 'peers', 'node_modules', name, 'package.json'),
  );
  return { module: requirePeer(name) as Module, version: `${name} ${version}` };
}

/** Times a search as the engine is timed, then asks once more for the rows. */
export async function measure<Found>(
  request: PeerRequest,
  peerCase: PeerCase,
  search: PeerSearch<Found>,
  rowsOf: (found: Found, count: number) => number[][],
): Promise<Omit<PeerAnswer, 'note'>> {
  const { batchCount, name } = peerCase;
  const batches = Math.max(1, Math.floor(request.queryCount / batchCount));
  const fromOf = (index: number) => (index % batches) * batchCount;
  await search(0, batchCount);
  const timing = await timeCalls({ ...request, batchCount }, (index) =>
    search(fromOf(index), batchCount),
  );
  const rows: number[][] = [];
  for (let index = 0; index < batches && rows.length < request.roundQueriesMin; index++) {
    rows.push(...rowsOf(await search(fromOf(index), batchCount), batchCount));
  }
  return { name, timing, rows };
}

export function reply(value: PeerReply): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** The rows of `count` queries out of one array of keys, k a query. */
export function splitKeys(keys: ArrayLike<bigint | number>, count: number): number[][] {
  const k = keys.length / count;
  return Array.from({ length: count }, (_, query) =>
    Array.from({ length: k }, (_, place) => Number(keys[query * k + place])),
  );
}

function readFloats(path: string, count: number): Float32Array {
  const bytes = readFileSync(path);
  if (bytes.length !== count * 4) {
    throw new Error(`${path}: expected ${count * 4} bytes, found ${bytes.length}`);
  }
  return new Float32Array(bytes.buffer, bytes.byteOffset, count);
}
