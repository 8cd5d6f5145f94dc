// A digest of the content of a collection at one sequence. Nodes that applied the same writes get the same digest,
// whatever their segments. It is the sum of the digests of the rows modulo 2^256, so that the digests of parts of a
// collection add up to that of the whole. It excludes expiries, because ended rows lose them.

import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { anySignal } from '../../common/cancel-signal.js';
import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Utf8Column } from '../../common/types.js';
import { type VectorColumn, vectorAt } from '../../common/vectors.js';
import type { Collection } from '../collection/collection.js';
import { rowsOf } from '../collection/snapshot.js';
import { allChunks, type RowChunk } from './scan.js';

export interface DigestRequest {
  /** The sequence to compute the digest at, which may be in the future; by default that of the last write. */
  readonly sequence?: number | undefined;
}

export interface CollectionDigest {
  readonly sequence: number;
  readonly vectorCount: number;
  /** 64 hexadecimal digits. */
  readonly digest: string;
}

/** Work between two yields to the event loop. */
const TURN_MS = 10;
const WORDS = 8;

/**
 * Rejects with `deadline_exceeded` if the sequence is not reached within the time limit of a request, and with
 * `invalid_request` if rows of the sequence may have been removed.
 */
export async function runDigest(
  collection: Collection,
  { sequence = collection.sequence }: DigestRequest,
  { limits }: { readonly limits: Limits },
  signal: AbortSignal | undefined,
): Promise<CollectionDigest> {
  const timeout = AbortSignal.timeout(limits.requestMsMax);
  const waiting = signal === undefined ? timeout : anySignal([signal, timeout]);
  await collection.waitForSequence(sequence, waiting).catch((error: unknown) => {
    throw timeout.aborted ? tooLate(collection, sequence) : error;
  });
  if (sequence < collection.horizonSequence) throw tooOld(collection, sequence);
  const unpin = collection.pin(sequence);
  try {
    const { views } = collection.snapshot(sequence);
    const addresses = rowsOf(views);
    const sum = new RowSum();
    let turnEndMs = performance.now() + TURN_MS;
    for (const chunk of allChunks(collection, views)) {
      for (let row = 0; row < chunk.count; row++) {
        const { segment, row: segmentRow } = addresses.next().value!;
        sum.add(chunk, row, segment.insertedSequence(segmentRow));
        if (row % 64 !== 0 || performance.now() < turnEndMs) continue;
        await nextTurn();
        signal?.throwIfAborted();
        turnEndMs = performance.now() + TURN_MS;
      }
    }
    return { sequence, vectorCount: sum.count, digest: sum.digest() };
  } finally {
    unpin();
  }
}

/** Stands for a vector that a row does not have. */
const NO_VALUES = new Float32Array(0);

class RowSum {
  count = 0;
  readonly #sum = new Uint32Array(WORDS);
  #scratch = Buffer.alloc(64 * 1024);
  #length = 0;

  /** Every variable part of the row is preceded by its length. */
  add(chunk: RowChunk, row: number, sequence: number): void {
    this.#length = 0;
    this.#addNumber(sequence);
    this.#addText(chunk.ids, row);
    for (const column of chunk.vectors) {
      const vector = vectorAt<VectorColumn>(column, row) ?? NO_VALUES;
      if ('indices' in vector) this.#addBytes(vector.indices);
      this.#addBytes(vector instanceof Float32Array ? vector : vector.values);
    }
    if (chunk.metadata !== null) this.#addText(chunk.metadata, row);
    const digest = hash('sha256', this.#scratch.subarray(0, this.#length), 'buffer');
    let carry = 0;
    for (let word = 0; word < WORDS; word++) {
      const total = this.#sum[word]! + digest.readUInt32LE(4 * word) + carry;
      this.#sum[word] = total;
      carry = total > 0xffffffff ? 1 : 0;
    }
    this.count++;
  }

  digest(): string {
    return Buffer.from(this.#sum.buffer).toString('hex');
  }

  #addText({ offsets, bytes }: Utf8Column, row: number): void {
    this.#addBytes(bytes.subarray(offsets[row], offsets[row + 1]));
  }

  #addNumber(value: number): void {
    this.#reserve(8);
    this.#length = this.#scratch.writeDoubleLE(value, this.#length);
  }

  #addBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): void {
    this.#addNumber(byteLength);
    this.#reserve(byteLength);
    this.#scratch.set(new Uint8Array(buffer, byteOffset, byteLength), this.#length);
    this.#length += byteLength;
  }

  #reserve(byteLength: number): void {
    const needed = this.#length + byteLength;
    if (needed <= this.#scratch.length) return;
    const larger = Buffer.alloc(2 * needed);
    larger.set(this.#scratch.subarray(0, this.#length));
    this.#scratch = larger;
  }
}

function tooLate({ definition, sequence }: Collection, wanted: number): SagittaError {
  return new SagittaError(
    'deadline_exceeded',
    `Collection "${definition.id}" did not reach sequence ${wanted} in time; this node is at ${sequence}.`,
  );
}

function tooOld({ definition, horizonSequence }: Collection, wanted: number): SagittaError {
  return new SagittaError(
    'invalid_request',
    `Expected a sequence of collection "${definition.id}" from ${horizonSequence} on, whose rows are all kept; found ${wanted}.`,
  );
}
