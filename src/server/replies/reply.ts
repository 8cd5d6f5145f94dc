// Replies as text: a status, headers and a body that is sent as it is. Also what an idempotency key
// keeps, so that a replay is the same to the byte.

/** A reply that is text. Idempotency keys keep it as JSON of these three members. */
export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const NO_STORE = 'no-store';
/** Records of collections: a cache may answer for half a minute, and then asks with the ETag. */
export const CACHE_RECORD = 'private, max-age=30';
/** Vectors: a cache asks each time, and is spared the body. */
export const CACHE_VECTOR = 'private, no-cache';

/** A 200 with JSON that no cache keeps, unless `headers` say otherwise. */
export function jsonReply(
  body: string,
  headers: Readonly<Record<string, string>> = {},
): StoredReply {
  return {
    status: 200,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': NO_STORE,
      ...headers,
    },
    body,
  };
}
