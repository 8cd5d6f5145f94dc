// A snapshot: the rows of a collection that are visible at one sequence, and those among them that
// pass a filter. Nothing here changes when writes go on: segments hand out immutable views.

import type { Bitmap } from '../../common/bitmap.js';
import type { MetadataView } from '../../common/columns.js';
import type { VectorBlock } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { Segment } from '../../segment/segment.js';
import type { FilterCache } from '../query/filter-cache.js';

/** One segment's share of a snapshot. */
export interface SegmentView {
  readonly segment: Segment;
  readonly block: VectorBlock;
  readonly metadata: MetadataView;
  /** Rows inserted by then: 0..rowCount. */
  readonly rowCount: number;
  /** Those of them that are visible; null for all. Shared: nobody writes to it. */
  readonly rows: Bitmap | null;
  readonly visibleCount: number;
}

export interface Snapshot {
  readonly sequence: number;
  /** In order of arrival, without segments that show nothing. */
  readonly views: readonly SegmentView[];
}

export function takeSnapshot(segments: readonly Segment[], sequence: number): Snapshot {
  const parts: SegmentView[] = [];
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
  return { sequence, views: parts };
}

/**
 * The parts with only the rows that pass the filter, which `visibleCount` counts. Bitmaps are shared
 * with other readers. Rejects with the signal's reason when it aborts.
 */
export async function filterViews(
  filters: FilterCache,
  parts: readonly SegmentView[],
  filter: FilterNode | null,
  signal?: AbortSignal,
): Promise<readonly SegmentView[]> {
  return filter === null ? parts : filters.filter(parts, filter, signal);
}

export function countVisible(parts: readonly SegmentView[]): number {
  let count = 0;
  for (const part of parts) count += part.visibleCount;
  return count;
}
