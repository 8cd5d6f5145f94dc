// Writes openapi.json from the routes and schemas of the built service. Run it after `npm run
// build`.
//
//   node scripts/write-openapi.mjs            writes
//   node scripts/write-openapi.mjs --check    fails when the file is not what would be written

import { createApp } from '../dist/src/http/app.js';
import { DEFAULT_LIMITS } from '../dist/src/limits.js';
import { silentLogger } from '../dist/src/logger.js';
import { createMetrics } from '../dist/src/metrics.js';
import { createInlinePool } from '../dist/src/pool.js';
import { writeGenerated } from './generated.mjs';

const app = await createApp({
  // Describing the service asks nothing of the database.
  database: { state: 'ready' },
  pool: createInlinePool(),
  limits: DEFAULT_LIMITS,
  defaultCollection: null,
  logger: silentLogger,
  metrics: createMetrics(),
});
const reply = await app.inject('/openapi.json');
await app.close();
writeGenerated('openapi.json', `${JSON.stringify(reply.json(), null, 2)}\n`);
