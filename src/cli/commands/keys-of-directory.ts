// The API keys of a data directory, whether a server runs on it or not: one way to work on them,
// two ways to reach them.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiKeyRecord, Keys } from '../../client/client.js';
import { SagittaError } from '../../common/errors.js';
import { CliError } from '../failure.js';
import { connectOperator, type Operator } from '../operator.js';

/** Another command holds the directory for a moment; a server that starts can be asked soon. */
const LOCKED_MS_MAX = 10_000;
const ASK_AGAIN_MS = 100;

/** `mayMake`: whether a directory without data is one to begin with, or a mistake. */
export async function keysOfDirectory<Result>(
  directory: string,
  options: { mayMake: boolean },
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  const startedAt = performance.now();
  while (true) {
    const operator = await connectOperator({ dataDir: directory });
    if (operator !== null) {
      return work(keysThrough(operator)).finally(() => operator.close());
    }
    if (!options.mayMake && !existsSync(join(directory, 'store.lmdb'))) {
      throw new CliError(`expected a data directory at ${directory}, found none (--data-dir)`);
    }
    try {
      return await workOffline(directory, work);
    } catch (error) {
      const isLocked = error instanceof SagittaError && error.code === 'data_directory_locked';
      if (!isLocked || performance.now() - startedAt > LOCKED_MS_MAX) throw error;
      await sleep(ASK_AGAIN_MS);
    }
  }
}

function keysThrough(operator: Operator): Keys {
  const at = (id: string) => `/keys/${encodeURIComponent(id)}`;
  return {
    create: (input) => operator.call('POST', '/keys', input),
    list: async () => (await operator.call<{ keys: ApiKeyRecord[] }>('GET', '/keys')).keys,
    get: (id) => operator.call('GET', at(id)),
    rotate: (id, request = {}) => operator.call('POST', `${at(id)}/rotate`, request),
    revoke: (id) => operator.call('DELETE', at(id)),
  };
}

async function workOffline<Result>(
  directory: string,
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  // Not before: lmdb takes a tenth of a second to load, and a running server needs none of it.
  const { apiKeyMembers, withApiKeys } = await import('../../offline.js');
  type Made = { record: Parameters<typeof apiKeyMembers>[0]; key: string };
  const withSecret = ({ record, key }: Made) => ({ ...apiKeyMembers(record), key });
  return withApiKeys(directory, (apiKeys) =>
    work({
      create: async ({ owner, scopes, expires_at = null }) =>
        withSecret(await apiKeys.create({ owner, scopes, expiresAt: expires_at })),
      list: async () => apiKeys.list().map(apiKeyMembers),
      get: async (id) => apiKeyMembers(apiKeys.get(id)),
      rotate: async (id, { grace_seconds = 0 } = {}) =>
        withSecret(await apiKeys.rotate(id, { graceMs: grace_seconds * 1000 })),
      revoke: async (id) => apiKeyMembers(await apiKeys.revoke(id)),
    }),
  );
}
