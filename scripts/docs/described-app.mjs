// The descriptions of the built server that the generators of documentation read.

import { DEFAULT_LIMITS } from '../../dist/src/common/limits.js';
import { silentLogger } from '../../dist/src/common/logger.js';
import { MemoryRelease } from '../../dist/src/platform/memory-release.js';
import { createMetrics } from '../../dist/src/platform/metrics.js';
import { createInlinePool } from '../../dist/src/platform/pool.js';
import { createApp, routesOf } from '../../dist/src/server/app.js';
import { Authenticator } from '../../dist/src/server/auth/authenticator.js';

const pool = createInlinePool();
const app = await createApp({
  // The descriptions need no database.
  database: { isStopping: false, memory: new MemoryRelease(pool) },
  pool,
  limits: DEFAULT_LIMITS,
  defaultCollection: null,
  logger: silentLogger,
  metrics: createMetrics(),
  authenticator: new Authenticator({ apiKeys: { isInUse: false } }),
});
const reply = await app.inject('/openapi.json');
if (reply.statusCode !== 200) throw new Error(`/openapi.json failed: ${reply.body}`);

/** The OpenAPI document as the server sends it. */
export const openApi = reply.json();
/** Every route of the server. */
export const routes = routesOf(app);

await app.close();
