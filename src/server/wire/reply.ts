// Replies whose body is text. Idempotency keys store them, so a replay is identical to the byte.

import type { Warning } from '../../database/api/warning.js';

/** Idempotency keys store it as JSON of these three members. */
export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The chunks of a body that is made while it is sent, each a few megabytes at most. */
export type ReplyChunks = AsyncIterable<Uint8Array | string>;

/** Static bodies are bytes, which all requests share. */
export interface RouteReply extends Omit<StoredReply, 'body'> {
  readonly body: string | Buffer | ReplyChunks;
}

export const NO_STORE = 'no-store';
/** Records of collections: a cache may serve them for 30 s, then revalidates with the ETag. */
export const CACHE_RECORD = 'private, max-age=30';
/** Vectors: a cache revalidates each time with the ETag. */
export const CACHE_VECTOR = 'private, no-cache';

/** Clients read 16 KB of headers, or less. */
const WARNINGS_BYTES_MAX = 4_096;

/** The warnings of a streamed reply, as JSON in ASCII; those that do not fit are left out. */
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
