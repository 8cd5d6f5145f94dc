// The records of a log form a chain: each carries the sequence and the digest of the record before it, and the
// log's entry in the table `logs` has those of its last one. A record that is missing, or that another one has
// taken the place of, breaks the chain, wherever it was. Two copies of a log whose last digests are equal have
// the same records.

import { hash } from 'node:crypto';
import { DROPPED } from './store-format.js';

/** A place in a log: after this record. */
export interface ChainLink {
  /** 0 before the first record. */
  readonly sequence: number;
  /** Of `DIGEST_BYTES`. */
  readonly digest: Buffer;
}

/** The state of a log, as stored in the table `logs`. */
export interface StoredLog {
  /** The record with the greatest sequence that the log ever had. */
  readonly last: ChainLink;
  /** `DROPPED` for a dropped log. */
  readonly trimmedThrough: number;
}

export const DIGEST_BYTES = 16;
const LINK_BYTES = 8 + DIGEST_BYTES;
const STORED_LOG_BYTES = LINK_BYTES + 8;

export const CHAIN_START: ChainLink = { sequence: 0, digest: Buffer.alloc(DIGEST_BYTES) };

/** What follows a record in its entry. */
export function encodeLink({ sequence, digest }: ChainLink): Buffer {
  const bytes = Buffer.allocUnsafe(LINK_BYTES);
  bytes.writeBigUInt64BE(BigInt(sequence));
  bytes.set(digest, 8);
  return bytes;
}

function decodeLink(bytes: Buffer): ChainLink {
  return {
    sequence: Number(bytes.readBigUInt64BE(0)),
    digest: Buffer.from(bytes.subarray(8, LINK_BYTES)),
  };
}

/** A record and the link to the one before it; undefined when there are too few bytes. */
export function splitRecord(
  value: Uint8Array,
): { record: Uint8Array; previous: ChainLink } | undefined {
  const end = value.byteLength - LINK_BYTES;
  if (end < 0) return undefined;
  return { record: value.subarray(0, end), previous: decodeLink(asBuffer(value).subarray(end)) };
}

/** The link to a record, from the one to its predecessor and the checksum of its entry. */
export function linkAfter(previous: ChainLink, sequence: number, checksum: number): ChainLink {
  const bytes = Buffer.allocUnsafe(LINK_BYTES + 12);
  bytes.set(encodeLink(previous));
  bytes.writeBigUInt64BE(BigInt(sequence), LINK_BYTES);
  bytes.writeUInt32BE(checksum, LINK_BYTES + 8);
  return { sequence, digest: digestOf(bytes) };
}

function isSameLink(a: ChainLink, b: ChainLink): boolean {
  return a.sequence === b.sequence && a.digest.equals(b.digest);
}

export function encodeStoredLog({ last, trimmedThrough }: StoredLog): Buffer {
  const bytes = Buffer.allocUnsafe(STORED_LOG_BYTES);
  bytes.set(encodeLink(last));
  bytes.writeBigUInt64BE(BigInt(trimmedThrough), LINK_BYTES);
  return bytes;
}

/** Undefined when the bytes are not those of a log. */
export function decodeStoredLog(value: Uint8Array): StoredLog | undefined {
  if (value.byteLength !== STORED_LOG_BYTES) return undefined;
  const bytes = asBuffer(value);
  const trimmedThrough = Number(bytes.readBigUInt64BE(LINK_BYTES));
  const last = decodeLink(bytes);
  if (last.sequence > DROPPED || trimmedThrough > DROPPED) return undefined;
  return { last, trimmedThrough };
}

/** Follows the chain of a log while its records are read in order. */
export class ChainReader {
  readonly #log: StoredLog;
  readonly #afterSequence: number;
  #last: ChainLink | undefined;

  /** `afterSequence`: the records up to here are not read. */
  constructor(log: StoredLog, afterSequence: number) {
    this.#log = log;
    this.#afterSequence = afterSequence;
  }

  /** What is wrong with the chain up to this record; undefined when nothing is. */
  accept(sequence: number, previous: ChainLink, checksum: number): string | undefined {
    const before = this.#last;
    this.#last = linkAfter(previous, sequence, checksum);
    if (before === undefined) {
      return previous.sequence <= this.#afterSequence
        ? this.#compareWithLast()
        : `record ${previous.sequence}, before ${sequence}, is missing`;
    }
    if (previous.sequence !== before.sequence) {
      return `records are missing: ${sequence} follows ${previous.sequence}, and ${before.sequence} was found before it`;
    }
    if (!previous.digest.equals(before.digest)) {
      return `record ${before.sequence} is not the one that record ${sequence} was written after`;
    }
    return this.#compareWithLast();
  }

  /** What is wrong after the last record that was found; undefined when nothing is. */
  end(): string | undefined {
    const { last } = this.#log;
    const found = this.#last?.sequence ?? this.#afterSequence;
    return found < last.sequence
      ? `its last records are missing: ${found} was found, expected ${last.sequence}`
      : undefined;
  }

  #compareWithLast(): string | undefined {
    const { last } = this.#log;
    if (this.#last!.sequence !== last.sequence || isSameLink(this.#last!, last)) return undefined;
    return `record ${last.sequence} is not the one that was written last`;
  }
}

export function digestOf(bytes: Buffer): Buffer {
  return hash('sha256', bytes, 'buffer').subarray(0, DIGEST_BYTES);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
