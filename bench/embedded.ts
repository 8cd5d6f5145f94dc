// A database in the memory of this process, for benches of single operations, and their timing.

import { systemClock } from '../src/common/clock.js';
import { DEFAULT_LIMITS } from '../src/common/limits.js';
import { silentLogger } from '../src/common/logger.js';
import { Database } from '../src/database/database.js';
import { createEngine } from '../src/engine/choose-engine.js';
import type { EngineName } from '../src/engine/core/engine.js';
import { createThreadPool } from '../src/platform/pool.js';
import { createMemoryState, createMemoryStore } from '../src/storage/memory-store.js';
import { quantile } from './engine/timing.js';

export const EMBEDDED_THREADS = 2;

/** Calls `run` with a database, which is closed afterwards. */
export async function withDatabase(
  requested: EngineName | 'auto',
  run: (database: Database) => Promise<void>,
): Promise<void> {
  const pool = createThreadPool({
    threadCount: EMBEDDED_THREADS,
  });
  const { engine } = await createEngine({ requested, pool, logger: silentLogger });
  const database = await Database.open({
    store: createMemoryStore({ state: createMemoryState() }),
    engine,
    engineReason: 'bench',
    pool,
    limits: DEFAULT_LIMITS,
    clock: systemClock,
    logger: silentLogger,
  });
  try {
    await database.loaded;
    await run(database);
  } finally {
    await database.close();
    await engine.close();
    await pool.close();
  }
}

/** Formats p50 / p99 for a cell of a table. */
export function percentiles(milliseconds: readonly number[]): string {
  const at = (share: number) => quantile(milliseconds, share).toFixed(2);
  return `${at(0.5)} / ${at(0.99)}`;
}
