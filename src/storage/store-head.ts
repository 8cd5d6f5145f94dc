// The head of the tables, an entry of its own that each commit replaces: the number of the commit, how many
// entries `values` and `logs` have and the sum of their checksums, and a digest that depends on all heads
// before it. An entry that vanished or became an older one changes count or sum. Records need no part in it:
// the entry of their log has the digest of their chain.

import type { PlannedWrite } from './commit-plan.js';
import { DIGEST_BYTES, digestOf } from './log-chain.js';
import { sealValue } from './sealed-entry.js';
import { encodeKey, type TableName } from './store-format.js';

export interface StoreHead {
  /** Of the commit, from 1 on without gaps. */
  readonly number: number;
  readonly entryCount: number;
  /** Modulo 2^32. */
  readonly checksumSum: number;
  /** Of `DIGEST_BYTES`. */
  readonly digest: Buffer;
}

/** Where the head is stored in the table `meta`. */
export const HEAD_KEY = encodeKey(['head']);
const HEAD_BYTES = 8 + 8 + 4 + DIGEST_BYTES;

/** Tables whose entries are counted. */
export function isCounted(table: TableName): boolean {
  return table === 'values' || table === 'logs';
}

/** The head of tables without entries. `salt` makes the digests of different stores differ. */
export function firstHead(salt: Buffer): StoreHead {
  return { number: 0, entryCount: 0, checksumSum: 0, digest: digestOf(salt) };
}

/** @param checksumAt of the stored entry; undefined when there is none. */
export function headAfter(
  head: StoreHead,
  writes: readonly PlannedWrite[],
  checksumAt: (table: TableName, key: Buffer) => number | undefined,
): StoreHead {
  let { entryCount, checksumSum } = head;
  const changed = new Map<string, number | undefined>();
  for (const { table, key, value } of writes) {
    if (!isCounted(table)) continue;
    const place = `${table} ${key.toString('latin1')}`;
    const before = changed.has(place) ? changed.get(place) : checksumAt(table, key);
    const after = value?.checksum;
    entryCount += Number(after !== undefined) - Number(before !== undefined);
    checksumSum = (checksumSum + (after ?? 0) - (before ?? 0)) >>> 0;
    changed.set(place, after);
  }
  return followedBy(head.digest, { number: head.number + 1, entryCount, checksumSum });
}

/** Whether `head` was written directly after a head with this digest. */
export function isAfter(head: StoreHead, digest: Buffer): boolean {
  return followedBy(digest, head).digest.equals(head.digest);
}

export function writeOfHead(head: StoreHead): PlannedWrite {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES);
  encodeTo(bytes, head);
  bytes.set(head.digest, HEAD_BYTES - DIGEST_BYTES);
  return { table: 'meta', key: HEAD_KEY, value: sealValue('meta', HEAD_KEY, [bytes]) };
}

/** Undefined when the bytes are not those of a head. */
export function decodeHead(value: Uint8Array): StoreHead | undefined {
  if (value.byteLength !== HEAD_BYTES) return undefined;
  const bytes = Buffer.from(value);
  return {
    number: Number(bytes.readBigUInt64BE(0)),
    entryCount: Number(bytes.readBigUInt64BE(8)),
    checksumSum: bytes.readUInt32BE(16),
    digest: bytes.subarray(HEAD_BYTES - DIGEST_BYTES),
  };
}

function followedBy(digest: Buffer, counts: Omit<StoreHead, 'digest'>): StoreHead {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES);
  encodeTo(bytes, counts);
  bytes.set(digest, HEAD_BYTES - DIGEST_BYTES);
  const { number, entryCount, checksumSum } = counts;
  return { number, entryCount, checksumSum, digest: digestOf(bytes) };
}

function encodeTo(bytes: Buffer, head: Omit<StoreHead, 'digest'>): void {
  bytes.writeBigUInt64BE(BigInt(head.number));
  bytes.writeBigUInt64BE(BigInt(head.entryCount), 8);
  bytes.writeUInt32BE(head.checksumSum, 16);
}
