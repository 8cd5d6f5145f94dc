// A snapshot: the rows of a collection that are visible at one sequence. Later writes do not change it, since
// segments hand out immutable views.

import {
  type Bitmap,
  clearBit,
  countBits,
  createBitmap,
  createFullBitmap,
  hasRow,
  NO_ROWS,
  rowsIn,
  setBit,
  uniteInto,
} from '../../common/bitmap.js';
import type { MetadataView } from '../../common/columns.js';
import type { VectorBlock } from '../../common/types.js';
import type { Segment } from '../../segment/segment.js';
import { type VisibleRows, visibleAmong } from '../../segment/visibility.js';
import type { RowAddress } from './rows.js';

/** A segment at a sequence. */
export interface SegmentView extends VisibleRows {
  readonly segment: Segment;
  readonly metadata: MetadataView;
  /** The vectors to search; absent if none were chosen. */
  readonly block?: VectorBlock;
}

/** A view of the rows that have a certain dense vector or multi-vector. */
export interface FieldView extends SegmentView {
  readonly block: VectorBlock;
}

/** A row that a view shows. */
export interface ViewRow<View extends SegmentView = SegmentView> extends RowAddress {
  readonly view: View;
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
    const { rowCount, rows, visibleCount } = visible;
    views.push({ segment, metadata: segment.metadataView(), rowCount, rows, visibleCount });
  }
  return { sequence, views };
}

/** The views restricted to rows that have the dense vector or multi-vector of this name. */
export function viewsOfField(views: readonly SegmentView[], name: string): readonly FieldView[] {
  const found: FieldView[] = [];
  for (const view of views) {
    const { segment, metadata } = view;
    const block = segment.block(name);
    if (block === undefined) continue;
    const { rowCount, rows, visibleCount } = segment.withVector(name, view);
    found.push({ segment, metadata, rowCount, rows, visibleCount, block });
  }
  return found;
}

/** The views with at least one visible row. */
export function withRows<View extends Pick<SegmentView, 'visibleCount'>>(
  views: readonly View[],
): readonly View[] {
  return views.filter(({ visibleCount }) => visibleCount > 0);
}

/** The visible rows, in order of arrival. */
export function* rowsOf<View extends SegmentView>(
  views: readonly View[],
): Generator<ViewRow<View>> {
  for (const view of views) {
    for (const row of rowsIn(view)) yield { view, segment: view.segment, row };
  }
}

export function countVisible(views: readonly SegmentView[]): number {
  let count = 0;
  for (const { visibleCount } of views) count += visibleCount;
  return count;
}

export function isVisible({ segment, row }: RowAddress, views: readonly SegmentView[]): boolean {
  const view = views.find((one) => one.segment === segment);
  return view !== undefined && hasRow(view, row);
}

/** The views without the given row, if they show it. */
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

/** Views of chosen rows. */
export type ChosenRows<View extends SegmentView = SegmentView> = readonly (View & {
  readonly rows: Bitmap;
})[];

/** Views restricted to the given rows. */
export function viewsOfRows<View extends SegmentView>(
  viewRows: Iterable<{ readonly view: View; readonly row: number }>,
): ChosenRows<View> {
  const bitmaps = new Map<View, Bitmap>();
  for (const { view, row } of viewRows) {
    let rows = bitmaps.get(view);
    if (rows === undefined) {
      rows = createBitmap(view.rowCount);
      bitmaps.set(view, rows);
    }
    setBit(rows, row);
  }
  return Array.from(bitmaps, ([view, rows]) => {
    return { ...view, rows, visibleCount: countBits(rows) };
  });
}

/** The views restricted to the chosen rows. */
export function amongRows(
  views: readonly SegmentView[],
  chosen: ChosenRows,
): readonly SegmentView[] {
  const chosenOf = new Map(chosen.map(({ segment, rows }) => [segment, rows]));
  return views.map((view) => {
    return { ...view, ...visibleAmong(view, chosenOf.get(view.segment) ?? NO_ROWS) };
  });
}

/** The views restricted to rows that any of the parts shows. The parts are views of the same segments. */
export function uniteViews(
  views: readonly SegmentView[],
  parts: readonly (readonly SegmentView[])[],
): readonly SegmentView[] {
  return views.map((view) => {
    const same = parts.flatMap((part) => part.filter(({ segment }) => segment === view.segment));
    if (same.some(({ visibleCount }) => visibleCount === view.visibleCount)) return view;
    const rows = createBitmap(view.rowCount);
    // Views without a bitmap show all rows of the snapshot, which was handled above.
    for (const part of same) if (part.rows !== null) uniteInto(rows, part.rows);
    return { ...view, rows, visibleCount: countBits(rows) };
  });
}
