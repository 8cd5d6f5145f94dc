// The form of replies. Those whose body is text can be stored under an idempotency key, so that a replay is identical.

import type { Warning } from '../../database/api/warning.js';

/** Stored under idempotency keys as JSON of these three members. */
export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The chunks of a body that is made while it is sent, each a few megabytes at most. */
export type ReplyChunks = AsyncIterable<Uint8Array | string>;

/** A Buffer is a static body that all requests share. */
export interface RouteReply extends Omit<StoredReply, 'body'> {
  readonly body: string | Buffer | ReplyChunks;
}

export const NO_STORE = 'no-store';
/** For records of collections: a cache may serve them for 30 s, then revalidates with the ETag. */
export const CACHE_RECORD = 'private, max-age=30';
/** For vectors: a cache revalidates each time with the ETag. */
export const CACHE_VECTOR = 'private, no-cache';

/** Some clients accept no more than 16 KB of headers. */
const WARNINGS_BYTES_MAX = 4_096;

/** The warnings of a streamed reply as ASCII JSON. Those that do not fit are omitted. */
export function warningsHeader(
  warnings: readonly Warning[] = [],
): Readonly<Record<string, string>> {
  const texts: string[] = [];
  let byteCount = 2;
  for (const warning of warnings) {
    const text = JSON.stringify(warning).replace(/[\x7f-\uffff]/g, escapeUnit);
    byteCount += text.length + 1;
    if (byteCount > WARNINGS_BYTES_MAX) break;
    if (!texts.includes(text)) texts.push(text);
  }
  return texts.length === 0 ? {} : { 'sagitta-warnings': `[${texts.join(',')}]` };
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** A 200 reply with JSON, which is not cacheable unless `headers` say otherwise. */
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
