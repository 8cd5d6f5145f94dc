// Writes to many vectors that were chosen by their ids, in requests of a bounded size. When one fails,
// those before it are done; the progress says how many.

import type { CallOptions, JsonObject, Vectors } from '../../client/client.js';

const IDS_PER_REQUEST_MAX = 1_000;

interface BatchOptions extends CallOptions {
  /** Gets the number of ids that are done. */
  readonly onProgress?: (idCount: number) => void;
}

/** Resolves to the number of vectors deleted; others were gone already. Throws SagittaClientError. */
export function deleteByIds(
  vectors: Vectors,
  ids: readonly string[],
  options: BatchOptions = {},
): Promise<number> {
  return inBatches(ids, options, async (some, callOptions) => {
    return (await vectors.deleteMany({ ids: some }, callOptions)).deleted_count;
  });
}

/** Merges `patch` into the metadata. Resolves to the number of vectors changed. Throws SagittaClientError. */
export function patchByIds(
  vectors: Vectors,
  ids: readonly string[],
  patch: JsonObject,
  options: BatchOptions = {},
): Promise<number> {
  return inBatches(ids, options, async (some, callOptions) => {
    return (await vectors.updateMany({ ids: some }, { patch }, callOptions)).updated_count;
  });
}

async function inBatches(
  ids: readonly string[],
  { onProgress, ...options }: BatchOptions,
  write: (ids: readonly string[], options: CallOptions) => Promise<number>,
): Promise<number> {
  let count = 0;
  for (let from = 0; from < ids.length; from += IDS_PER_REQUEST_MAX) {
    const some = ids.slice(from, from + IDS_PER_REQUEST_MAX);
    count += await write(some, options);
    onProgress?.(from + some.length);
  }
  return count;
}
