// Services with time limits, and requests of slow clients.

import { DEFAULT_LIMITS, type Limits } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import { createFilledService } from '../harness.js';
import { headOf, listen } from '../wire.js';

/** A running service and the warnings in its log. */
export async function start(limits: Partial<Limits>) {
  const warnings: string[] = [];
  const service = await createFilledService({
    limits: { ...DEFAULT_LIMITS, ...limits },
    logger: {
      ...silentLogger,
      warn: (details: object, message: string) => {
        warnings.push(`${message} ${JSON.stringify(details)}`);
      },
    },
  });
  return { service, port: await listen(service), warnings };
}
export const query = (headers: Record<string, string | number>) =>
  headOf('POST', '/collections/c/query', { 'content-type': 'application/json', ...headers });

/** Longer than any delay of a busy machine. */
export const HANG_MS = 60_000;
