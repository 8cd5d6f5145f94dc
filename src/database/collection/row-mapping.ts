// Finds out which segments of a node hold the same rows as files of another node, although they may begin at other rows
// and lack other rows that were deleted. On all nodes, rows are in the order of their writes.

import type { Turns } from '../../common/turns.js';
import type { Segment } from '../../segment/segment.js';
import type { ManifestSegment } from '../layout/manifest.js';

/** A place in the order of the rows: after those of all writes up to `sequence`, and the first ones of the next. */
export interface RowPosition {
  readonly sequence: number;
  readonly partialRowCount: number;
}

export function isBefore(a: RowPosition, b: RowPosition): boolean {
  return (
    a.sequence < b.sequence || (a.sequence === b.sequence && a.partialRowCount < b.partialRowCount)
  );
}

/** A segment, with the digest of its file; null for none. */
export interface LocalSegment {
  readonly segment: Segment;
  readonly digest: string | null;
}

/** The segments whose rows are all before the position, and one of which only the first rows are. */
export function segmentsBefore(
  segments: readonly Segment[],
  { sequence, partialRowCount }: RowPosition,
): { readonly whole: readonly Segment[]; readonly cut: { segment: Segment; row: number } | null } {
  const whole: Segment[] = [];
  let missing = partialRowCount;
  for (const segment of segments) {
    const complete = segment.rowCountAt(sequence);
    const partial = Math.min(missing, segment.rowCountAt(sequence + 1) - complete);
    missing -= partial;
    const row = complete + partial;
    if (row < segment.rowCount) return { whole, cut: row === 0 ? null : { segment, row } };
    whole.push(segment);
  }
  return { whole, cut: null };
}

/** Neighbouring segments, and the files of the other node with the same rows. */
export interface Exchange {
  readonly old: readonly Segment[];
  readonly files: readonly ManifestSegment[];
}

/** Leaves out equal files. Both lists are in order of arrival. */
export function exchangesBetween(
  local: readonly LocalSegment[],
  shared: readonly ManifestSegment[],
): Exchange[] {
  const places = new Map(shared.map(({ digest }, i) => [digest, i]));
  const exchanges: Exchange[] = [];
  let old: Segment[] = [];
  let next = 0;
  const endAt = (place: number) => {
    // Without segments here, the rows of the files have ended and no snapshot here can see them.
    if (old.length > 0) exchanges.push({ old, files: shared.slice(next, place) });
    old = [];
    next = place + 1;
  };
  for (const { segment, digest } of local) {
    const place = digest === null ? undefined : places.get(digest);
    if (place === undefined || place < next) old.push(segment);
    else endAt(place);
  }
  endAt(shared.length);
  return exchanges;
}

/** Carries deletions from segments to others with the same rows. */
export class RowMapping {
  readonly #old: readonly Segment[];
  readonly #fresh: readonly Segment[];
  /** For each old segment, the place of each of its rows among all fresh rows, ascending, or -1. */
  readonly #places: readonly Int32Array[];
  /** The first place of each fresh segment. */
  readonly #starts: readonly number[];

  private constructor(
    old: readonly Segment[],
    fresh: readonly Segment[],
    places: readonly Int32Array[],
  ) {
    this.#old = old;
    this.#fresh = fresh;
    this.#places = places;
    const starts: number[] = [];
    let start = 0;
    for (const { rowCount } of fresh) {
      starts.push(start);
      start += rowCount;
    }
    this.#starts = starts;
  }

  /**
   * Compaction may have removed rows on either side. Fresh rows that the old segments lack become deleted at
   * `horizonSequence`, up to which the old ones were compacted. Throws if a row that is not deleted is missing.
   */
  static async between(
    old: readonly Segment[],
    fresh: readonly Segment[],
    { horizonSequence, turns }: { readonly horizonSequence: number; readonly turns: Turns },
  ): Promise<RowMapping> {
    const places = old.map(({ rowCount }) => new Int32Array(rowCount).fill(-1));
    const mapping = new RowMapping(old, fresh, places);
    const olds = groupsOf(old);
    let ofOld = olds.next().value;
    for (const ofFresh of groupsOf(fresh)) {
      while (ofOld !== undefined && ofOld.sequence < ofFresh.sequence) ofOld = olds.next().value;
      const same = ofOld?.sequence === ofFresh.sequence ? ofOld : null;
      mapping.#match(same?.rows ?? [], ofFresh.rows, horizonSequence);
      const nextTurn = turns.next();
      if (nextTurn !== undefined) await nextTurn;
    }
    mapping.#requireLiveRows();
    return mapping;
  }

  /** Matches the rows of one write. */
  #match(old: readonly Address[], fresh: readonly Address[], horizonSequence: number): void {
    if (old.length === fresh.length && old.every((row, i) => isSame(row, fresh[i]!))) {
      for (const [i, row] of fresh.entries()) this.#pair(old[i]!, row);
      return;
    }
    // The ids of a write are different.
    const byId = new Map(old.map((row) => [idOf(row), row]));
    for (const row of fresh) {
      const segment = row.segments[row.index]!;
      const found = byId.get(idOf(row));
      if (found !== undefined) this.#pair(found, row);
      else if (segment.insertedSequence(row.row) >= horizonSequence)
        throw otherRows(segment, row.row);
      else segment.markDeleted(row.row, horizonSequence);
    }
  }

  #pair(old: Address, fresh: Address): void {
    this.#places[old.index]![old.row] = this.#starts[fresh.index]! + fresh.row;
  }

  #requireLiveRows(): void {
    for (const [i, places] of this.#places.entries()) {
      const segment = this.#old[i]!;
      for (let row = 0; row < places.length; row++) {
        const isLive = segment.deletedSequence(row) === Number.POSITIVE_INFINITY;
        if (isLive && places[row]! < 0) throw otherRows(segment, row);
      }
    }
  }

  /** Whether all rows of an old segment are the same rows of the only fresh one. */
  get isIdentity(): boolean {
    const [places, ...others] = this.#places;
    return others.length === 0 && places!.every((place, row) => place === row);
  }

  /** Called again for rows that were deleted since. */
  copyDeletions(): void {
    for (const [i, places] of this.#places.entries()) {
      const source = this.#old[i]!;
      let index = 0;
      for (let row = 0; row < places.length; row++) {
        const place = places[row]!;
        const sequence = source.deletedSequence(row);
        if (place < 0 || sequence === Number.POSITIVE_INFINITY) continue;
        while (place >= this.#starts[index]! + this.#fresh[index]!.rowCount) index++;
        const target = this.#fresh[index]!;
        const to = place - this.#starts[index]!;
        if (target.deletedSequence(to) === Number.POSITIVE_INFINITY) {
          target.markDeleted(to, sequence);
        }
      }
    }
  }
}

interface Address {
  readonly segments: readonly Segment[];
  readonly index: number;
  readonly row: number;
}

/** The rows of each write. */
function* groupsOf(
  segments: readonly Segment[],
): Generator<{ readonly sequence: number; readonly rows: readonly Address[] }, undefined> {
  let sequence = 0;
  let rows: Address[] = [];
  for (const [index, segment] of segments.entries()) {
    for (let row = 0; row < segment.rowCount; row++) {
      const inserted = segment.insertedSequence(row);
      if (inserted !== sequence && rows.length > 0) {
        yield { sequence, rows };
        rows = [];
      }
      sequence = inserted;
      rows.push({ segments, index, row });
    }
  }
  if (rows.length > 0) yield { sequence, rows };
  return undefined;
}

function idOf({ segments, index, row }: Address): string {
  return segments[index]!.id(row);
}

function isSame(a: Address, b: Address): boolean {
  return a.segments[a.index]!.idEquals(a.row, b.segments[b.index]!.idBytes(b.row));
}

function otherRows(segment: Segment, row: number): Error {
  return new Error(
    `Expected the same rows in the shared files and on this node; the row ${JSON.stringify(segment.id(row))}, written at sequence ${segment.insertedSequence(row)}, is only in ${segment.key}.`,
  );
}
