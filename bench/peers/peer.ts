// The protocol between the bench and a peer: a JSON file as the request, a line of JSON as the reply. For Node
// packages, this file also reads the request, loads the package and times the search.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Metric } from '../../src/common/types.js';
import { ROOT } from '../engine/machine.js';
import { type Timing, timeCalls } from '../engine/timing.js';

export interface PeerCase {
  readonly name: string;
  readonly metric: Metric;
  /** Queries per call. */
  readonly batchCount: number;
  /** The exact rows of every query, best first, for choosing the search width of a graph. */
  readonly truth: readonly (readonly number[])[];
}

export interface PeerRequest {
  /** Contains `rows.f32` and `queries.f32`: row-major float32 unit vectors in native byte order. */
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
  /** Details for the table. */
  readonly note: string;
  /** Results of the first queries, best first; not timed. */
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

/** One call: the rows of the queries from..from + count, best first, as returned by the package. */
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

/** Peers are not dependencies of the project; bench/peers/install installs them. */
const requirePeer = createRequire(join(ROOT, 'build', 'peers', 'package.json'));

/** Loads a peer's package; `Module` types the part that the bench uses. */
export function loadPackage<Module>(name: string): { module: Module; version: string } {
  const { version } = requirePeer(
    join(ROOT, 'build', 'peers', 'node_modules', name, 'package.json'),
  );
  return { module: requirePeer(name) as Module, version: `${name} ${version}` };
}

/** Times a search in the same way as the engine, then runs it again for the results. */
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

/** The rows of `count` queries from one array of keys, k per query. */
export function splitKeys(keys: ArrayLike<bigint | number>, count: number): number[][] {
  const k = keys.length / count;
  return Array.from({ length: count }, (_, query) =>
    Array.from({ length: k }, (_, rank) => Number(keys[query * k + rank])),
  );
}

function readFloats(path: string, count: number): Float32Array {
  const bytes = readFileSync(path);
  if (bytes.length !== count * 4) {
    throw new Error(`${path}: expected ${count * 4} bytes, found ${bytes.length}`);
  }
  return new Float32Array(bytes.buffer, bytes.byteOffset, count);
}
