// Metadata of many vectors by their ids, in requests of a bounded size. Each id costs as much as a
// query, so that many ids reach the rate limit; then it waits, which takes less long than to begin again.

import {
  type CallOptions,
  type JsonObject,
  SagittaClientError,
  type Vectors,
} from '../../client/client.js';

const IDS_PER_REQUEST_MAX = 1_000;

/** By id, without those of vectors that no longer exist. Throws SagittaClientError. */
export async function fetchMetadata(
  vectors: Vectors,
  ids: readonly string[],
  options: CallOptions = {},
): Promise<Map<string, JsonObject>> {
  const found = new Map<string, JsonObject>();
  for (let from = 0; from < ids.length; from += IDS_PER_REQUEST_MAX) {
    const some = ids.slice(from, from + IDS_PER_REQUEST_MAX);
    const reply = await retryWhenLimited(() =>
      vectors.fetch(some, { include_values: false }, options),
    );
    for (const { id, metadata } of reply.vectors) found.set(id, metadata ?? {});
  }
  return found;
}

async function retryWhenLimited<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const isLimited = error instanceof SagittaClientError && error.status === 429;
      if (!isLimited || error.retryAfterMs === undefined) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs));
    }
  }
}
