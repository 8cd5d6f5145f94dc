// What every method takes besides its request, and the paths that ids make.

import { SagittaClientError } from './error.js';

export interface CallOptions {
  /** Ends the call, with the signal's reason as the error. */
  readonly signal?: AbortSignal;
  /** Milliseconds that one try may take, in place of the client's; Infinity waits for ever. */
  readonly timeoutMs?: number;
}

export interface WriteOptions extends CallOptions {
  /** Made by the client when absent; give one to make a write safe across restarts of yours. */
  readonly idempotencyKey?: string;
}

/** The part of a request that `CallOptions` give. */
export function callOf(options: CallOptions | undefined): {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
} {
  return { signal: options?.signal, timeoutMs: options?.timeoutMs };
}

/** An id as one part of a path. Dots alone would walk the path, however they are encoded. */
export function pathPart(id: string): string {
  if (id === '' || id === '.' || id === '..') {
    throw new SagittaClientError(
      'invalid_argument',
      `"${id}" cannot be a part of a URL; name it in a body instead (upsert, fetch, deleteMany)`,
    );
  }
  try {
    return encodeURIComponent(id);
  } catch {
    throw new SagittaClientError('invalid_argument', 'expected an id of whole characters');
  }
}
