// The application of the built service, for scripts that write down what it says of itself.

import { DEFAULT_LIMITS } from '../dist/src/common/limits.js';
import { silentLogger } from '../dist/src/common/logger.js';
import { createMetrics } from '../dist/src/platform/metrics.js';
import { createInlinePool } from '../dist/src/platform/pool.js';
import { createApp } from '../dist/src/server/app.js';

/** Hands the application to `read`, and closes it. */
export async function describeApp(read) {
  const app = await createApp({
    // Describing the service asks nothing of the database.
    database: { state: 'ready' },
    pool: createInlinePool(),
    limits: DEFAULT_LIMITS,
    defaultCollection: null,
    logger: silentLogger,
    metrics: createMetrics(),
  });
  try {
    return await read(app);
  } finally {
    await app.close();
  }
}
