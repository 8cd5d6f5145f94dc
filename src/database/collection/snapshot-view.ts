// A collection as it was at one sequence, for as long as somebody looks: while it is open, no
// compaction takes rows away that it shows, and ids lead to the rows that had them then.

import { collectionNotFound } from '../../common/errors.js';
import type { Segment } from '../../segment/segment.js';
import type { Collection } from './collection.js';
import type { RowAddress } from './rows.js';
import type { Snapshot } from './snapshot.js';

/** A snapshot of the segments that were there when it was taken. */
interface Look {
  readonly segments: readonly Segment[];
  readonly snapshot: Snapshot;
  readonly shown: ReadonlySet<Segment>;
  /** By id, the rows that it shows and that have ended since. */
  readonly ended: Map<string, RowAddress>;
  endedThrough: number;
}

export class SnapshotView {
  readonly collection: Collection;
  readonly sequence: number;
  readonly #isThere: () => boolean;
  /** By sequence: its own, and those of cursors. */
  readonly #unpins = new Map<number, () => void>();
  #look: Look | null = null;
  #isClosed = false;

  /** @param isThere whether the collection is still served. */
  constructor(collection: Collection, isThere: () => boolean) {
    this.collection = collection;
    this.sequence = collection.sequence;
    this.#isThere = isThere;
    this.pin(this.sequence);
  }

  /** Another snapshot, which can be read now, is kept as well. */
  pin(sequence: number): void {
    if (this.#isClosed || this.#unpins.has(sequence)) return;
    this.#unpins.set(sequence, this.collection.pin(sequence));
  }

  /**
   * Its own, or another one that is kept. Rows may move to other segments, and it is then another
   * object with the same rows. Throws `collection_not_found`.
   */
  snapshot(sequence: number = this.sequence): Snapshot {
    const { snapshot } = this.#current();
    return sequence === this.sequence ? snapshot : this.collection.snapshot(sequence);
  }

  /** The row that had this id. Good until the next turn of the event loop. Throws `collection_not_found`. */
  find(id: string): RowAddress | undefined {
    const look = this.#current();
    const address = this.collection.find(id);
    if (address !== undefined) {
      const { segment, row } = address;
      if (look.shown.has(segment) && segment.insertedSequence(row) <= this.sequence) return address;
    }
    this.#noteEnded(look);
    return look.ended.get(id);
  }

  /** Any number of times. */
  close(): void {
    this.#isClosed = true;
    for (const unpin of this.#unpins.values()) unpin();
    this.#unpins.clear();
    this.#look = null;
  }

  #current(): Look {
    if (!this.#isThere()) throw collectionNotFound(this.collection.definition.id);
    const { segments } = this.collection.rows;
    if (this.#look?.segments !== segments) {
      const snapshot = this.collection.snapshot(this.sequence);
      this.#look = {
        segments,
        snapshot,
        shown: new Set(snapshot.views.map(({ segment }) => segment)),
        ended: new Map(),
        endedThrough: this.sequence,
      };
    }
    return this.#look;
  }

  #noteEnded(look: Look): void {
    const { sequence } = this.collection;
    if (look.endedThrough === sequence) return;
    for (const { segment, rowCount } of look.snapshot.views) {
      for (const row of segment.deletionsBetween(look.endedThrough, sequence).rows) {
        if (row < rowCount) look.ended.set(segment.id(row), { segment, row });
      }
    }
    look.endedThrough = sequence;
  }
}
