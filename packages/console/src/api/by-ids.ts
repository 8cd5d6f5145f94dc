// Reads and writes many vectors by id, in requests of bounded size. If a write fails, the previous ones are done;
// `onProgress` has reported how many.

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
 * The vectors that exist. Each id counts as a query for the rate limit, which many ids reach; the function then waits
 * and goes on. Throws SagittaClientError.
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

/** Metadata by id, for the vectors that still exist. Throws SagittaClientError. */
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

interface WriteByIdsOptions extends CallOptions {
  /** Called with the number of ids that are done. */
  readonly onProgress?: (idCount: number) => void;
}

/** Resolves to the number of vectors deleted; the others no longer existed. Throws SagittaClientError. */
export function deleteByIds(
  vectors: Vectors,
  ids: readonly string[],
  options: WriteByIdsOptions = {},
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
  options: WriteByIdsOptions = {},
): Promise<number> {
  return writeByIds(ids, options, async (some, callOptions) => {
    return (await vectors.updateMany({ ids: some }, { patch }, callOptions)).updated_count;
  });
}

async function writeByIds(
  ids: readonly string[],
  { onProgress, ...options }: WriteByIdsOptions,
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
