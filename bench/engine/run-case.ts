// Runs one case on one engine: checks the results, then times calls.

import { crc32 } from 'node:zlib';
import type { Engine, SearchHits, SearchQuery } from '../../src/engine/core/engine.js';
import { type Case, createQueries } from './cases.js';
import { checkAnswer, type Truth, WrongResult } from './check.js';
import type { DataSet } from './data.js';
import type { Parameters } from './options.js';
import { type Timing, timeCalls } from './timing.js';

export interface CaseResult {
  readonly benchCase: Case;
  readonly data: { readonly rowCount: number; readonly dimension: number };
  readonly timing: Timing;
  /** Checksum of rows and score bits of the checked call: equal on every engine and machine. */
  readonly checksum: string;
  readonly checkedCount: number;
  readonly rescoredPerQuery: number;
  readonly residentBytes: number;
}

/** Throws WrongResult with the case and the query before anything is timed. */
export async function runCase(
  engine: Engine,
  benchCase: Case,
  data: DataSet,
  truth: Truth,
  parameters: Parameters,
): Promise<CaseResult> {
  const queries = createQueries(benchCase, data, truth);
  const batches = cutBatches(queries, benchCase.batchCount);
  const hits: SearchHits[] = [];
  for (const batch of batches) {
    hits.push(...(await engine.search(batch)));
    if (hits.length >= Math.max(truth.queryCount, parameters.roundQueriesMin)) break;
  }
  checkAll(benchCase, queries, hits, data, truth);
  const timing = await timeCalls({ ...parameters, batchCount: benchCase.batchCount }, (index) =>
    engine.search(batches[index % batches.length]!),
  );
  const rescored = hits.reduce((sum, { rescoredCount }) => sum + rescoredCount, 0);
  return {
    benchCase,
    data,
    timing,
    checksum: checksumOf(hits),
    checkedCount: truth.queryCount,
    rescoredPerQuery: rescored / hits.length,
    residentBytes: process.memoryUsage.rss(),
  };
}

/** Batches of exactly the given length; queries are repeated if there are too few. */
export function cutBatches(queries: readonly SearchQuery[], length: number): SearchQuery[][] {
  const batchCount = Math.max(1, Math.floor(queries.length / length));
  return Array.from({ length: batchCount }, (_, batch) =>
    Array.from({ length }, (_, i) => queries[(batch * length + i) % queries.length]!),
  );
}

function checkAll(
  benchCase: Case,
  queries: readonly SearchQuery[],
  hits: readonly SearchHits[],
  data: DataSet,
  truth: Truth,
): void {
  for (let index = 0; index < truth.queryCount; index++) {
    const query = queries[index]!;
    try {
      checkAnswer(hits[index]!, truth.matchesOf(query), data);
      checkScannedCount(hits[index]!, query);
    } catch (error) {
      if (!(error instanceof WrongResult)) throw error;
      throw new WrongResult(
        `wrong result in "${benchCase.name}", query ${index}: ${error.message}`,
      );
    }
  }
}

function checkScannedCount({ scannedCount }: SearchHits, { views }: SearchQuery): void {
  let expected = 0;
  for (const { rowCount, rows } of views) {
    if (rows === null) expected += rowCount;
    else for (const word of rows.words) expected += word.toString(2).replaceAll('0', '').length;
  }
  if (scannedCount !== expected) {
    throw new WrongResult(`expected ${expected} scanned rows, found ${scannedCount}`);
  }
}

export function checksumOf(hits: readonly SearchHits[]): string {
  let sum = 0;
  for (const { viewIndexes, rows, scores } of hits) {
    for (const array of [viewIndexes, rows, scores]) {
      sum = crc32(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), sum);
    }
  }
  return sum.toString(16).padStart(8, '0');
}
