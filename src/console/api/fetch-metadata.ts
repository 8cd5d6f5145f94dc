// Metadata of many vectors by their ids, in requests of a bounded size.

import type { CallOptions, JsonObject, Vectors } from '../../client/client.js';

const IDS_PER_REQUEST_MAX = 1_000;

interface FetchOptions extends CallOptions {
  readonly onProgress?: (idCount: number) => void;
}

/** By id, without those of vectors that no longer exist. Throws SagittaClientError. */
export async function fetchMetadata(
  vectors: Vectors,
  ids: readonly string[],
  { onProgress, ...options }: FetchOptions = {},
): Promise<Map<string, JsonObject>> {
  const found = new Map<string, JsonObject>();
  for (let from = 0; from < ids.length; from += IDS_PER_REQUEST_MAX) {
    const some = ids.slice(from, from + IDS_PER_REQUEST_MAX);
    const reply = await vectors.fetch(some, { include_values: false }, options);
    for (const { id, metadata } of reply.vectors) found.set(id, metadata ?? {});
    onProgress?.(from + some.length);
  }
  return found;
}
