// The built server's application, for the scripts that generate documentation from it.

import { DEFAULT_LIMITS } from '../../dist/src/common/limits.js';
import { silentLogger } from '../../dist/src/common/logger.js';
import { MemoryRelease } from '../../dist/src/platform/memory-release.js';
import { createMetrics } from '../../dist/src/platform/metrics.js';
import { createInlinePool } from '../../dist/src/platform/pool.js';
import { createApp } from '../../dist/src/server/app.js';
import { Authenticator } from '../../dist/src/server/auth/authenticator.js';

/** Calls `read` with the application and closes it. */
export async function describeApp(read) {
  const pool = createInlinePool();
  const app = await createApp({
    // Generating descriptions does not use the database.
    database: { state: 'ready', memory: new MemoryRelease(pool) },
    pool,
    limits: DEFAULT_LIMITS,
    defaultCollection: null,
    logger: silentLogger,
    metrics: createMetrics(),
    authenticator: new Authenticator({ apiKeys: { isInUse: false } }),
  });
  try {
    return await read(app);
  } finally {
    await app.close();
  }
}
