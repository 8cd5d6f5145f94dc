// A snapshot: the rows of a collection that are visible at one sequence, and those among them that
// pass a filter. Nothing here changes when writes go on: segments hand out immutable views.

import { type Bitmap, countBits, createFullBitmap, intersectInto } from '../bitmap.js';
import type { MetadataView } from '../columns.js';
import { selectRows } from '../filter/evaluate-task.js';
import type { FilterNode } from '../filter/filter-node.js';
import type { WorkerPool } from '../pool.js';
import type { Segment } from '../segment/segment.js';
import type { VectorBlock } from '../types.js';

/** One segment's share of a snapshot. */
export interface SnapshotPart {
  readonly segment: Segment;
  readonly block: VectorBlock;
  readonly metadata: MetadataView;
  /** Rows inserted by then: 0..rowCount. */
  readonly rowCount: number;
  /** Those of them that are visible; null for all. */
  readonly rows: Bitmap | null;
  readonly visibleCount: number;
}

export interface Snapshot {
  readonly sequence: number;
  /** In order of arrival, without segments that show nothing. */
  readonly parts: readonly SnapshotPart[];
}

export function takeSnapshot(segments: readonly Segment[], sequence: number): Snapshot {
  const parts: SnapshotPart[] = [];
  for (const segment of segments) {
    const visible = segment.visibleAt(sequence);
    if (visible.visibleCount === 0) continue;
    parts.push({
      segment,
      block: segment.block(),
      metadata: segment.metadataView(),
      ...visible,
    });
  }
  return { sequence, parts };
}

/** The part with only the rows that pass the filter; `visibleCount` counts those. */
export async function filterPart(
  pool: WorkerPool,
  part: SnapshotPart,
  filter: FilterNode | null,
): Promise<SnapshotPart> {
  if (filter === null) return part;
  const passing = await selectRows(pool, filter, part.metadata);
  const rows =
    part.rows === null
      ? createFullBitmap(part.rowCount)
      : { length: part.rows.length, words: part.rows.words.slice() };
  intersectInto(rows, passing);
  return { ...part, rows, visibleCount: countBits(rows) };
}

/** Every part filtered, at the pool's speed. */
export function filterSnapshot(
  pool: WorkerPool,
  snapshot: Snapshot,
  filter: FilterNode | null,
): Promise<SnapshotPart[]> {
  return Promise.all(snapshot.parts.map((part) => filterPart(pool, part, filter)));
}

export function countVisible(parts: readonly SnapshotPart[]): number {
  let count = 0;
  for (const part of parts) count += part.visibleCount;
  return count;
}
