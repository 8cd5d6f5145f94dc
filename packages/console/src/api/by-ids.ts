// Reads and writes of many vectors that are named by their ids, in requests of a bounded size. When a write fails,
// those before it are done; the progress says how many.

import {
  type CallOptions,
  type Include,
  type IncludeMetadata,
  type JsonObject,
  type PlainValues,
  type ReadVector,
  SagittaClientError,
  type Vectors,
} from '@sagitta/client';

const FETCHED_MAX = 500;
const WRITTEN_MAX = 1_000;

/**
 * Those of the vectors that exist. Each id costs as much as a query, so that many ids reach the rate limit; then it
 * waits, which takes less long than to begin again. Throws SagittaClientError.
 */
export async function* fetchByIds<Asked extends PlainValues, Included extends IncludeMetadata>(
  vectors: Vectors,
  ids: readonly string[],
  include: Include<Asked, Included>,
  options: CallOptions = {},
): AsyncGenerator<ReadVector<JsonObject, Asked, Included>> {
  for (const some of groupsOf(ids, FETCHED_MAX)) {
    const reply = await retryWhenLimited(() => vectors.fetch(some, include, options));
    yield* reply.vectors;
  }
}

/** By id, without those of vectors that no longer exist. Throws SagittaClientError. */
export async function fetchMetadata(
  vectors: Vectors,
  ids: readonly string[],
  options: CallOptions = {},
): Promise<Map<string, JsonObject>> {
  const found = new Map<string, JsonObject>();
  const rows = fetchByIds(vectors, ids, { include_values: false }, options);
  for await (const { id, metadata } of rows) found.set(id, metadata ?? {});
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

interface WriteOptions extends CallOptions {
  /** Gets the number of ids that are done. */
  readonly onProgress?: (idCount: number) => void;
}

/** Resolves to the number of vectors deleted; others were gone already. Throws SagittaClientError. */
export function deleteByIds(
  vectors: Vectors,
  ids: readonly string[],
  options: WriteOptions = {},
): Promise<number> {
  return writeByIds(ids, options, async (some, callOptions) => {
    return (await vectors.deleteMany({ ids: some }, callOptions)).deleted_count;
  });
}

/** Merges `patch` into the metadata. Resolves to the number of vectors changed. Throws SagittaClientError. */
export function patchByIds(
  vectors: Vectors,
  ids: readonly string[],
  patch: JsonObject,
  options: WriteOptions = {},
): Promise<number> {
  return writeByIds(ids, options, async (some, callOptions) => {
    return (await vectors.updateMany({ ids: some }, { patch }, callOptions)).updated_count;
  });
}

async function writeByIds(
  ids: readonly string[],
  { onProgress, ...options }: WriteOptions,
  write: (ids: readonly string[], options: CallOptions) => Promise<number>,
): Promise<number> {
  let count = 0;
  let done = 0;
  for (const some of groupsOf(ids, WRITTEN_MAX)) {
    count += await write(some, options);
    done += some.length;
    onProgress?.(done);
  }
  return count;
}

function* groupsOf(ids: readonly string[], size: number): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += size) yield ids.slice(from, from + size);
}
