// The engine of one checkout in a process of its own: opens a data set and times cases on it on request. The
// data and the timing are those of this checkout, so that both checkouts are measured alike.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { silentLogger } from '../../src/common/logger.js';
import type { createEngine } from '../../src/engine/choose-engine.js';
import type { Engine, SearchHits, SearchQuery } from '../../src/engine/core/engine.js';
import type { createThreadPool, WorkerPool } from '../../src/platform/pool.js';
import { createRandom, createRandomBitmap } from '../engine/cases.js';
import { matchesOf } from '../engine/check.js';
import type { DataSet, encodeData } from '../engine/data.js';
import type { Parameters } from '../engine/options.js';
import { checksumOf } from '../engine/run-case.js';
import { type Timing, timeCalls } from '../engine/timing.js';
import { openVectors, type VectorSource } from './vectors.js';

/** A case of the engine. */
export interface EngineCase {
  readonly name: string;
  /** Queries per call. */
  readonly batchCount: number;
  readonly k: number;
  /** The share of rows that pass the filter of each query; null without a filter. */
  readonly passShare: number | null;
}

export type ChildRequest =
  | {
      readonly kind: 'open';
      readonly root: string;
      readonly source: VectorSource;
      readonly parameters: Parameters;
    }
  | { readonly kind: 'check'; readonly engineCase: EngineCase }
  | { readonly kind: 'time'; readonly engineCase: EngineCase; readonly seconds: number };

export type ChildReply =
  | { readonly kind: 'opened'; readonly rowCount: number; readonly dimension: number }
  /** The checksum is equal for equal rows and score bits; `rows` holds those of each query, best first. */
  | { readonly kind: 'checked'; readonly checksum: string; readonly rows: number[][] }
  | { readonly kind: 'timed'; readonly timing: Timing }
  | { readonly kind: 'failed'; readonly message: string };

/** The number of queries whose results are compared before a case is timed. */
const CHECKED_MAX = 16;

interface Opened {
  readonly engine: Engine;
  readonly pool: WorkerPool;
  readonly data: DataSet;
}

let opened: Opened | null = null;

process.on('message', (request: ChildRequest) => {
  answer(request).then(
    (reply) => process.send!(reply),
    (error: Error) => process.send!({ kind: 'failed', message: error.message }),
  );
});

async function answer(request: ChildRequest): Promise<ChildReply> {
  if (request.kind === 'open') {
    opened = await open(request);
    const { rowCount, dimension } = opened.data;
    return { kind: 'opened', rowCount, dimension };
  }
  const { engine, data } = opened!;
  const { engineCase } = request;
  const batches = createBatches(engineCase, data);
  if (request.kind === 'check') {
    const hits = (await engine.search(batches.flat().slice(0, CHECKED_MAX))) as SearchHits[];
    const rows = hits.map((each) => matchesOf(each, data).map(({ row }) => row));
    return { kind: 'checked', checksum: checksumOf(hits), rows };
  }
  const plan = {
    batchCount: engineCase.batchCount,
    roundQueriesMin: engineCase.batchCount,
    roundsMin: 1,
    secondsMin: request.seconds,
  };
  // The scheduler of the database calls it like this for a query while no other one is running.
  const options = { mayBlock: engineCase.batchCount === 1 };
  const timing = await timeCalls(plan, (i) => engine.search(batches[i % batches.length]!, options));
  return { kind: 'timed', timing };
}

async function open({
  root,
  source,
  parameters,
}: Extract<ChildRequest, { kind: 'open' }>): Promise<Opened> {
  const load = (path: string) => import(pathToFileURL(join(root, 'dist', path)).href);
  const pools = (await load('src/platform/pool.js')) as {
    createThreadPool: typeof createThreadPool;
  };
  const engines = (await load('src/engine/choose-engine.js')) as {
    createEngine: typeof createEngine;
  };
  const encoders = (await load('bench/engine/data.js')) as { encodeData: typeof encodeData };
  const pool = pools.createThreadPool();
  const { engine } = await engines.createEngine({ requested: 'simd', pool, logger: silentLogger });
  const { data } = await encoders.encodeData(engine, openVectors(source, parameters));
  return { engine, pool, data };
}

function createBatches({ batchCount, k, passShare }: EngineCase, data: DataSet): SearchQuery[][] {
  const random = createRandom(7);
  // Bitmaps of a million rows are large: cases with a filter have few distinct queries.
  const vectors = passShare === null ? data.queries : data.queries.slice(0, 128);
  const queries = vectors.map((vector): SearchQuery => {
    const views =
      passShare === null
        ? data.views
        : data.views.map((view) => ({
            ...view,
            rows: createRandomBitmap(random, view.rowCount, passShare),
          }));
    return { vector, metric: 'cosine', k, views, after: null, scoreMin: null };
  });
  const count = Math.max(1, Math.floor(queries.length / batchCount));
  return Array.from({ length: count }, (_, batch) =>
    Array.from(
      { length: batchCount },
      (_, i) => queries[(batch * batchCount + i) % queries.length]!,
    ),
  );
}
