// Replies whose body is text. Idempotency keys store them, so a replay is identical to the byte.

/** Idempotency keys store it as JSON of these three members. */
export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const NO_STORE = 'no-store';
/** Records of collections: a cache may serve them for 30 s, then revalidates with the ETag. */
export const CACHE_RECORD = 'private, max-age=30';
/** Vectors: a cache revalidates each time with the ETag. */
export const CACHE_VECTOR = 'private, no-cache';

/** A reply of status 200 with JSON, not cacheable unless `headers` say otherwise. */
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
