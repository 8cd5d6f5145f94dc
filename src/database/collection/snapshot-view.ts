// A view of a collection at one sequence. While it is open, no compaction removes rows that are visible in it,
// and ids resolve to the rows that had them at that sequence.

import { collectionNotFound } from '../../common/errors.js';
import type { Segment } from '../../segment/segment.js';
import type { Collection } from './collection.js';
import type { RowAddress } from './rows.js';
import type { Snapshot } from './snapshot.js';

/** A snapshot of the segments that existed when it was taken; it is replaced when they change. */
interface CachedSnapshot {
  readonly segments: readonly Segment[];
  readonly snapshot: Snapshot;
  /** Rows of the view that have ended since, by id. */
  readonly endedRows: Map<string, RowAddress>;
  /** `endedRows` contains the rows that ended up to this sequence. */
  endedThroughSequence: number;
}

export interface ServedCollections {
  /** Whether the collection still exists. */
  isServing(collection: Collection): boolean;
}

export class SnapshotView {
  readonly collection: Collection;
  readonly sequence: number;
  readonly #collections: ServedCollections;
  /** The pins by sequence: that of the view, and those of cursors. */
  readonly #unpins = new Map<number, () => void>();
  #cached: CachedSnapshot | null = null;
  #isClosed = false;

  constructor(collection: Collection, collections: ServedCollections) {
    this.collection = collection;
    this.sequence = collection.sequence;
    this.#collections = collections;
    this.pin(this.sequence);
  }

  /** Retains another snapshot, which must be readable, until the view is closed. */
  pin(sequence: number): void {
    if (this.#isClosed || this.#unpins.has(sequence)) return;
    this.#unpins.set(sequence, this.collection.pin(sequence));
  }

  /**
   * The snapshot of the view, or of another pinned sequence. After a compaction it is a new object with the same rows.
   * Throws `collection_not_found`.
   */
  snapshot(sequence: number = this.sequence): Snapshot {
    if (sequence === this.sequence) return this.#current().snapshot;
    this.#requireServed();
    return this.collection.snapshot(sequence);
  }

  /** The row that had this id; valid until the next await. Throws `collection_not_found`. */
  find(id: string): RowAddress | undefined {
    const cached = this.#current();
    // A live row is part of the view unless it was inserted later.
    const address = this.collection.find(id);
    if (address !== undefined && address.segment.insertedSequence(address.row) <= this.sequence)
      return address;
    this.#addEndedRows(cached);
    return cached.endedRows.get(id);
  }

  /** May be called more than once. */
  close(): void {
    this.#isClosed = true;
    for (const unpin of this.#unpins.values()) unpin();
    this.#unpins.clear();
    this.#cached = null;
  }

  #current(): CachedSnapshot {
    this.#requireServed();
    const { segments } = this.collection.rows;
    if (this.#cached?.segments !== segments) {
      const snapshot = this.collection.snapshot(this.sequence);
      this.#cached = {
        segments,
        snapshot,
        endedRows: new Map(),
        endedThroughSequence: this.sequence,
      };
    }
    return this.#cached;
  }

  #requireServed(): void {
    const { collection } = this;
    if (this.#collections.isServing(collection)) return;
    throw collectionNotFound(collection.definition.id);
  }

  #addEndedRows(cached: CachedSnapshot): void {
    const { sequence } = this.collection;
    if (cached.endedThroughSequence === sequence) return;
    for (const { segment, rowCount } of cached.snapshot.views) {
      for (const row of segment.deletionsBetween(cached.endedThroughSequence, sequence).rows) {
        if (row < rowCount) cached.endedRows.set(segment.id(row), { segment, row });
      }
    }
    cached.endedThroughSequence = sequence;
  }
}
