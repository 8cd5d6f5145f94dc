// The engine of one checkout in a process of its own: opens a data set and times cases on it on request. The
// data and the timing are those of this checkout, so that both checkouts are measured alike.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { silentLogger } from '../../src/common/logger.js';
import type { createEngine } from '../../src/engine/choose-engine.js';
import type { Engine, SearchHits } from '../../src/engine/core/engine.js';
import type { createThreadPool, WorkerPool } from '../../src/platform/pool.js';
import { type Case, createQueries } from '../engine/cases.js';
import { createDataSet, type DataSet, type encodeData } from '../engine/data.js';
import type { DataName, Parameters } from '../engine/options.js';
import { checksumOf, cutBatches } from '../engine/run-case.js';
import { type Timing, timeCalls } from '../engine/timing.js';

export type ChildRequest =
  | {
      readonly kind: 'open';
      readonly root: string;
      readonly name: DataName;
      readonly parameters: Parameters;
    }
  | { readonly kind: 'check'; readonly benchCase: Case }
  | { readonly kind: 'time'; readonly benchCase: Case; readonly seconds: number };

export type ChildReply =
  | { readonly kind: 'opened' }
  /** The checksum is equal for equal rows and score bits. */
  | { readonly kind: 'checked'; readonly checksum: string }
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
    return { kind: 'opened' };
  }
  const { engine, data } = opened!;
  const { benchCase } = request;
  const batches = cutBatches(createQueries(benchCase, data, null), benchCase.batchCount);
  if (request.kind === 'check') {
    const hits = (await engine.search(batches.flat().slice(0, CHECKED_MAX))) as SearchHits[];
    return { kind: 'checked', checksum: checksumOf(hits) };
  }
  const plan = {
    batchCount: benchCase.batchCount,
    roundQueriesMin: benchCase.batchCount,
    roundsMin: 1,
    secondsMin: request.seconds,
  };
  // The scheduler of the database calls it like this for a query while no other one is running.
  const options = { mayBlock: benchCase.batchCount === 1 };
  const timing = await timeCalls(plan, (i) => engine.search(batches[i % batches.length]!, options));
  return { kind: 'timed', timing };
}

async function open({
  root,
  name,
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
  const { data } = await encoders.encodeData(engine, createDataSet(name, parameters));
  return { engine, pool, data };
}
