// The records of a chain as bytes: the length of a header, the header as JSON, a summary, and the SHA-256 of all
// three. The header names the format and the version of Sagitta that wrote it, which every version can read, the digest
// of the previous record, and the digests of the commit's fragments, which precede the record as messages of their own.

import { hash } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import { CLUSTER_FORMAT, otherFormat, VERSION, type WrittenFormat } from './cluster-format.js';
import type { Commit, CommitFragment, LogLink } from './collection-log.js';

const DIGEST_BYTES = 32;
const LENGTH_BYTES = 4;

/** A fragment of a commit, as its record describes it. */
export interface FragmentDescription {
  readonly shard: number;
  readonly byteCount: number;
  /** The messages that the fragment was cut into. They precede the record, in the order of the fragments. */
  readonly messageCount: number;
  readonly digest: string;
}

interface ChainHeader {
  /** A mark follows the head, so a commit that was sent earlier for the same head can no longer be appended. */
  readonly kind: 'commit' | 'epoch' | 'mark';
  readonly epoch: number;
  /** Unique, so that a writer recognises its own records. */
  readonly id: string;
  readonly previous: { readonly position: number; readonly digest: string };
  readonly owner?: string;
  readonly firstSequence?: number;
  readonly lastSequence?: number;
  readonly fragments?: readonly FragmentDescription[];
}

export interface ChainRecord extends ChainHeader {
  readonly summary: Uint8Array;
}

/** A process that wants to become the writer, and the epoch that it wants to begin. */
export interface Claim {
  readonly epoch: number;
  readonly owner: string;
}

export function encodeChainRecord({ summary, ...header }: ChainRecord): Uint8Array {
  const json = Buffer.from(JSON.stringify({ format: CLUSTER_FORMAT, version: VERSION, ...header }));
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + json.length + summary.length + DIGEST_BYTES);
  bytes.writeUInt32LE(json.length);
  bytes.set(json, LENGTH_BYTES);
  bytes.set(summary, LENGTH_BYTES + json.length);
  const end = bytes.length - DIGEST_BYTES;
  bytes.set(digestOf(bytes.subarray(0, end)), end);
  return bytes;
}

/** Throws `data_corrupt`, and `configuration_invalid` for another format. `where` names the record in messages. */
export function decodeChainRecord(bytes: Uint8Array, where: string): ChainRecord {
  const end = bytes.length - DIGEST_BYTES;
  const found = digestOf(bytes.subarray(0, Math.max(0, end)));
  if (end < LENGTH_BYTES || !found.equals(bytes.subarray(end))) {
    throw logDamaged(where, `its digest is not that of its ${bytes.length} bytes`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerEnd = LENGTH_BYTES + view.getUint32(0, true);
  const json = Buffer.from(bytes.subarray(LENGTH_BYTES, headerEnd)).toString();
  const { format, version, ...header } = JSON.parse(json) as ChainHeader & WrittenFormat;
  if (format !== CLUSTER_FORMAT) throw otherFormat(where, { format, version });
  return { ...header, summary: bytes.subarray(headerEnd, end) };
}

/** The digest of an encoded record, by which the next record names it. */
export function digestOfRecord(encoded: Uint8Array): string {
  return Buffer.from(encoded.subarray(encoded.length - DIGEST_BYTES)).toString('hex');
}

/** The link to an encoded record. Checks its digest, and throws `data_corrupt`. `where` names it in messages. */
export function linkToRecord(position: number, encoded: Uint8Array, where: string): LogLink {
  const { epoch } = decodeChainRecord(encoded, where);
  return { position, digest: digestOfRecord(encoded), epoch };
}

/** `pieces`: the messages that each fragment was cut into. */
export function commitRecord(
  { firstSequence, lastSequence, fragments, summary }: Commit,
  pieces: readonly (readonly Uint8Array[])[],
  { epoch, id, previous }: { epoch: number; id: string; previous: LogLink },
): ChainRecord {
  return {
    kind: 'commit',
    epoch,
    id,
    previous: { position: previous.position, digest: previous.digest },
    firstSequence,
    lastSequence,
    fragments: fragments.map(({ shard, bytes }, i) => ({
      shard,
      byteCount: bytes.length,
      messageCount: pieces[i]!.length,
      digest: digestOf(bytes).toString('hex'),
    })),
    summary,
  };
}

/** Joins the messages of a fragment. Throws `data_corrupt` unless they are what was committed. */
export function joinFragment(
  { shard, byteCount, digest }: FragmentDescription,
  messages: readonly Uint8Array[],
  where: string,
): CommitFragment {
  const bytes = messages.length === 1 ? messages[0]! : Buffer.concat(messages);
  if (bytes.length !== byteCount || digestOf(bytes).toString('hex') !== digest) {
    throw logDamaged(where, `the fragment of shard ${shard} differs from what was committed`);
  }
  return { shard, bytes };
}

export function encodeClaim(claim: Claim): Uint8Array {
  return Buffer.from(JSON.stringify(claim));
}

/** A claim that cannot be read counts as one for a later epoch: writers stop, and some process takes over. */
export function decodeClaim(bytes: Uint8Array): Claim {
  try {
    const { epoch, owner } = JSON.parse(Buffer.from(bytes).toString()) as Partial<Claim>;
    if (Number.isInteger(epoch) && typeof owner === 'string') return { epoch: epoch!, owner };
  } catch {}
  return { epoch: Number.POSITIVE_INFINITY, owner: 'a damaged claim' };
}

export function logDamaged(where: string, what: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `${where} is damaged: ${what}. The records from there on must come from another replica or from the archive.`,
  );
}

function digestOf(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer');
}
