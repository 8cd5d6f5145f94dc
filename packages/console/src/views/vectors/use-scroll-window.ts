// Connects an element that scrolls with the rows in view. The layer of rows is moved without rendering;
// React renders only when other rows come into view.

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import {
  placeAfterScroll,
  placeOf,
  positionShowing,
  rowsInView,
  type ScrollArea,
} from './scroll-window.js';

const OVERSCAN_ROWS = 8;
/** Rows come and go in steps, so that not every row that is passed renders. */
const STEP_ROWS = 4;
/** Rows of the window beyond those that fit into the viewport: on both sides, and one that is cut. */
export const WINDOW_ROWS_MORE = 2 * OVERSCAN_ROWS + 1;
/** Offsets of rows are relative to a row that seldom changes: pixels of CSS end at 33 million. */
const ANCHOR_ROWS = 10_000;
/** After the last movement, the scroll bar is put in proportion to the position. */
const SETTLED_MS = 150;

export interface ScrollWindow {
  readonly first: number;
  readonly last: number;
  /** Rows are drawn at (row - anchor) * rowHeight in the layer. */
  readonly anchor: number;
  readonly onScroll: () => void;
  readonly showRow: (row: number) => void;
}

export function useScrollWindow(
  scroller: RefObject<HTMLElement | null>,
  layer: RefObject<HTMLElement | null>,
  area: ScrollArea,
): ScrollWindow {
  const place = useRef({ scrollTop: 0, position: 0 });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [start, setStart] = useState(0);
  const rows = rowsInView(area, start, OVERSCAN_ROWS);
  const anchor = Math.floor(rows.first / ANCHOR_ROWS) * ANCHOR_ROWS;

  const draw = useCallback(() => {
    const { scrollTop, position } = place.current;
    const offset = scrollTop - position + anchor * area.rowHeight;
    layer.current?.style.setProperty('transform', `translateY(${offset}px)`);
    const step = area.rowHeight * STEP_ROWS;
    setStart(Math.floor(position / step) * step);
  }, [anchor, area.rowHeight, layer]);

  const settle = useCallback(() => {
    place.current = placeOf(area, place.current.position);
    if (scroller.current !== null) scroller.current.scrollTop = place.current.scrollTop;
    draw();
  }, [area, draw, scroller]);

  // Fewer rows, or another height, may leave the position beyond the end.
  useLayoutEffect(settle, [settle]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const onScroll = () => {
    const { scrollTop } = scroller.current!;
    if (scrollTop === place.current.scrollTop) return;
    place.current = placeAfterScroll(area, place.current, scrollTop);
    // Before the browser paints: the rows that were jumped to would be missing for a frame.
    flushSync(draw);
    clearTimeout(timer.current);
    timer.current = setTimeout(settle, SETTLED_MS);
  };
  const showRow = (row: number) => {
    const position = positionShowing(area, place.current.position, row);
    if (position === place.current.position) return;
    place.current = placeOf(area, position);
    scroller.current!.scrollTop = place.current.scrollTop;
    draw();
  };
  return { ...rows, anchor, onScroll, showRow };
}
