// Cursors are sealed, self-contained tokens. A token contains everything that the next page depends on,
// so that the server keeps no state per client and any process with the same secret can continue. It is
// sealed with AES-256-GCM, so that clients can neither read nor change it. The nonce is a keyed digest
// of the content, so that equal pages have equal cursors and different content never shares a nonce.

import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { SagittaError } from '../../common/errors.js';
import type { SealedRanking } from '../search/peers.js';
import type { ListOptions } from './list-options.js';
import type { PlannedOptions } from './query-options.js';

// A token is base64url(version byte, 12-byte nonce, ciphertext, 16-byte tag). Its plain text is the length of the
// header (uint32), the compressed JSON header, and the vectors of the header as little-endian float32; in the header
// each vector is an object with its length, because compression hardly shortens vectors.
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The common part of the cursors of lists and queries. */
interface CursorBase {
  readonly incarnation: string;
  /** The sequence of the snapshot. */
  readonly sequence: number;
  /** When the first page opened the snapshot, in milliseconds; the retention of its rows starts then. */
  readonly openedAtMs: number;
}

export interface ListCursor extends CursorBase {
  readonly kind: 'list';
  readonly options: Partial<ListOptions>;
  /** The offset in the order at which the next page begins; null for the order of arrival. */
  readonly offset: number | null;
  /** The row after which the next page begins in the order of arrival; null for other orders. */
  readonly after: { readonly sequence: number; readonly id: string } | null;
}

export interface QueryCursor extends CursorBase {
  readonly kind: 'query';
  readonly options: Partial<PlannedOptions>;
  readonly ranking: SealedRanking;
  /** The number of matches or groups on all pages so far. */
  readonly returnedCount: number;
  /**
   * The last match in the order of scores; null for sorted, grouped and diversified queries, which
   * continue by `returnedCount`.
   */
  readonly after: { readonly score: number; readonly id: string } | null;
}

export type Cursor = ListCursor | QueryCursor;

export class CursorSealer {
  readonly #secret: Uint8Array;
  readonly #nonceKey: Uint8Array;
  /** A request by alias opens its cursor twice, first to find its collection. */
  #lastOpened: { readonly token: string; readonly cursor: Cursor } | null = null;

  /** @param secret 32 bytes, the same in every process that accepts these cursors. */
  constructor(secret: Uint8Array) {
    this.#secret = secret;
    this.#nonceKey = createHmac('sha256', secret).update('cursor nonce').digest();
  }

  seal(cursor: Cursor): string {
    const { header: text, vectors } = cutVectors(cursor);
    const header = deflateRawSync(text, { dictionary: DICTIONARY });
    const headerLength = Buffer.alloc(4);
    headerLength.writeUInt32LE(header.length);
    const plain = Buffer.concat([headerLength, header, ...vectors]);
    const nonce = createHmac('sha256', this.#nonceKey)
      .update(plain)
      .digest()
      .subarray(0, NONCE_BYTES);
    const version = Buffer.of(VERSION);
    const cipher = createCipheriv('aes-256-gcm', this.#secret, nonce).setAAD(version);
    return Buffer.concat([
      version,
      nonce,
      cipher.update(plain),
      cipher.final(),
      cipher.getAuthTag(),
    ]).toString('base64url');
  }

  /** Throws `cursor_invalid` for a token that was not sealed with this secret. */
  open(token: string): Cursor {
    if (this.#lastOpened?.token !== token) this.#lastOpened = { token, cursor: this.#open(token) };
    return this.#lastOpened.cursor;
  }

  #open(token: string): Cursor {
    const bytes = Buffer.from(token, 'base64url');
    if (bytes.length < 1 + NONCE_BYTES + 4 + TAG_BYTES || bytes.toString('base64url') !== token) {
      throw invalid('it was not issued by this service');
    }
    const version = bytes[0]!;
    if (version !== VERSION) {
      throw invalid(`it has format version ${version}; this service reads version ${VERSION}`);
    }
    const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
    const tag = bytes.subarray(bytes.length - TAG_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#secret, nonce, {
      authTagLength: TAG_BYTES,
    })
      .setAAD(bytes.subarray(0, 1))
      .setAuthTag(tag);
    let plain: Buffer;
    try {
      plain = Buffer.concat([
        decipher.update(bytes.subarray(1 + NONCE_BYTES, bytes.length - TAG_BYTES)),
        decipher.final(),
      ]);
    } catch {
      throw invalid('it was changed or issued by another service');
    }
    const headerEnd = 4 + plain.readUInt32LE(0);
    const header = inflateRawSync(plain.subarray(4, headerEnd), { dictionary: DICTIONARY });
    return pasteVectors(header.toString(), plain.subarray(headerEnd));
  }
}

/** Frequent names and values, the most frequent last, which compressed headers need not contain. Part of the format. */
const DICTIONARY = Buffer.from(
  '"kind":"list","kind":"multi","kind":"examples","kind":"sparse","indices":["values":"kind":"fusion","method":' +
    '{"kind":"rrf","constant":60},"parts":[{"ranking":"weight":1"kind":"text","request":{"query":"matchesAll":true' +
    '"kind":"prefetch","first":"candidateCount":100"lambda":0.5"path":"size":1"field":"order":"asc""desc"$in":["$gte":"$lt":' +
    '"filter":{"true,false,"metric":"euclidean"metric":"dot"{"kind":"query","incarnation":"","sequence":1' +
    '"openedAtMs":17,"options":{"filter":null,"sort":null,"grouping":null,"diversity":null,"scoreThreshold":null,' +
    '"topK":null,"limit":100,"limit":10,"includeMetadata":true,"includeValues":true,"includeMetadata":false,' +
    '"includeValues":false},"ranking":{"kind":"vector","using":null,"vector":{"$vector":768},"metric":"cosine",' +
    '"excludedIds":[],"digest":null},"offset":null,"returnedCount":100,"after":{"score":0.',
);

/** The member of an object that stands for a vector in a header; its value is the length. */
const VECTOR_MEMBER = '$vector';
/** The member of an object that stands for an integer beyond float64; its value is the digits. */
const INTEGER_MEMBER = '$integer';

function cutVectors(cursor: Cursor): { header: Buffer; vectors: Uint8Array[] } {
  const vectors: Uint8Array[] = [];
  const text = JSON.stringify(cursor, (_key, value: unknown) => {
    if (typeof value === 'bigint') return { [INTEGER_MEMBER]: String(value) };
    if (!(value instanceof Float32Array)) return value;
    // Copied, because the vector may be in shared memory.
    vectors.push(new Uint8Array(float32Bytes(value)));
    return { [VECTOR_MEMBER]: value.length };
  });
  return { header: Buffer.from(text), vectors };
}

function pasteVectors(header: string, bytes: Uint8Array): Cursor {
  let next = 0;
  // The reviver visits vectors in the order in which they were written. Filters cannot contain these members,
  // because names that begin with "$" are operators.
  return JSON.parse(header, (_key, value: unknown) => {
    const members = value as { [VECTOR_MEMBER]?: unknown; [INTEGER_MEMBER]?: unknown } | null;
    const digits = members?.[INTEGER_MEMBER];
    if (typeof digits === 'string') return BigInt(digits);
    const length = members?.[VECTOR_MEMBER];
    if (typeof length !== 'number') return value;
    const start = next;
    next += length * Float32Array.BYTES_PER_ELEMENT;
    // Copied to a buffer of its own, which is aligned.
    return new Float32Array(Uint8Array.from(bytes.subarray(start, next)).buffer);
  }) as Cursor;
}

function invalid(why: string): SagittaError {
  return new SagittaError('cursor_invalid', `The cursor is not valid: ${why}.`);
}

function float32Bytes(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}
