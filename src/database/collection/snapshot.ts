// A snapshot: the rows of a collection that are visible at one sequence. It does not change when
// writes go on, since segments hand out immutable views.

import {
  type Bitmap,
  clearBit,
  countBits,
  createBitmap,
  createFullBitmap,
  hasBit,
  intersectInto,
  nextSetBit,
  uniteInto,
} from '../../common/bitmap.js';
import type { MetadataView } from '../../common/columns.js';
import type { VectorBlock } from '../../common/types.js';
import type { Segment } from '../../segment/segment.js';
import type { RowAddress } from './rows.js';

/** A segment at a sequence. */
export interface SegmentView {
  readonly segment: Segment;
  readonly metadata: MetadataView;
  /** Rows that had been inserted by then: 0..rowCount. */
  readonly rowCount: number;
  /** Those of them that are visible; null for all. Shared, so it is never written to. */
  readonly rows: Bitmap | null;
  readonly visibleCount: number;
  /** The vectors that are searched; absent where none were chosen. */
  readonly block?: VectorBlock;
}

/** A segment with the rows that have a dense vector or a multi-vector. */
export interface FieldView extends SegmentView {
  readonly block: VectorBlock;
}

export interface Snapshot {
  readonly sequence: number;
  /** In order of arrival, without segments that have no visible row. */
  readonly views: readonly SegmentView[];
}

export function takeSnapshot(segments: readonly Segment[], sequence: number): Snapshot {
  const views: SegmentView[] = [];
  for (const segment of segments) {
    const visible = segment.visibleAt(sequence);
    if (visible.visibleCount === 0) continue;
    views.push({ segment, metadata: segment.metadataView(), ...visible });
  }
  return { sequence, views };
}

/** The views with those of their rows that have the dense vector or multi-vector of the name. */
export function viewsOfField(views: readonly SegmentView[], name: string): readonly FieldView[] {
  return views.flatMap((view) => {
    const block = view.segment.block(name);
    return block === undefined ? [] : { ...view, ...view.segment.withVector(name, view), block };
  });
}

/** The views that show any row. */
export function withRows<View extends Pick<SegmentView, 'visibleCount'>>(
  views: readonly View[],
): readonly View[] {
  return views.filter(({ visibleCount }) => visibleCount > 0);
}

/** The visible rows, in order of arrival. */
export function* rowsOf(views: readonly SegmentView[]): Generator<RowAddress> {
  for (const { rows, rowCount, segment } of views) {
    if (rows === null) {
      for (let row = 0; row < rowCount; row++) yield { segment, row };
    } else {
      for (let row = nextSetBit(rows, 0); row >= 0; row = nextSetBit(rows, row + 1)) {
        yield { segment, row };
      }
    }
  }
}

export function countVisible(views: readonly SegmentView[]): number {
  let count = 0;
  for (const { visibleCount } of views) count += visibleCount;
  return count;
}

export function isVisible({ segment, row }: RowAddress, views: readonly SegmentView[]): boolean {
  const view = views.find((one) => one.segment === segment);
  return view !== undefined && (view.rows === null || hasBit(view.rows, row));
}

/** The views without a row that they may show. */
export function withoutRow(
  views: readonly SegmentView[],
  address: RowAddress,
): readonly SegmentView[] {
  if (!isVisible(address, views)) return views;
  const { segment, row } = address;
  return views.map((view) => {
    if (view.segment !== segment) return view;
    const rows = createFullBitmap(view.rowCount);
    if (view.rows !== null) rows.words.set(view.rows.words.subarray(0, rows.words.length));
    clearBit(rows, row);
    return { ...view, rows, visibleCount: view.visibleCount - 1 };
  });
}

/** The views with only the rows that are among these of their segments, as well. */
export function amongRows(
  views: readonly SegmentView[],
  rowsOfSegments: ReadonlyMap<Segment, Bitmap>,
): readonly SegmentView[] {
  return views.map((view) => {
    const rows = createBitmap(view.rowCount);
    const kept = rowsOfSegments.get(view.segment);
    if (kept !== undefined) rows.words.set(kept.words.subarray(0, rows.words.length));
    if (view.rows !== null) intersectInto(rows, view.rows);
    return { ...view, rows, visibleCount: countBits(rows) };
  });
}

/** The views with only the rows that any of the parts shows, which are views of the same segments. */
export function uniteViews(
  views: readonly SegmentView[],
  parts: readonly (readonly SegmentView[])[],
): readonly SegmentView[] {
  return views.map((view) => {
    const same = parts.flatMap((part) => part.filter(({ segment }) => segment === view.segment));
    if (same.some(({ visibleCount }) => visibleCount === view.visibleCount)) return view;
    const rows = createBitmap(view.rowCount);
    // Views that show all of their rows show as many as the snapshot.
    for (const part of same) if (part.rows !== null) uniteInto(rows, part.rows);
    return { ...view, rows, visibleCount: countBits(rows) };
  });
}
