// Connects a scrolling element with its visible rows. The layer of rows is moved without rendering; React renders only
// when new rows come into view.

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import {
  positionShowing,
  rowsInView,
  type ScrollArea,
  stateAfterScroll,
  stateAt,
} from './scroll-window.js';

const OVERSCAN_ROWS = 8;
/** Rows are added in steps, so that not every row that scrolls past causes a rendering. */
const STEP_ROWS = 4;
/** The number of rows beyond those that fit into the viewport: overscan on both sides, and one partly visible row. */
export const EXTRA_ROWS = 2 * OVERSCAN_ROWS + 1;
/** Offsets of rows are relative to a row that seldom changes, because CSS offsets end at 33 million pixels. */
const ANCHOR_ROWS = 10_000;
/** The delay after the last movement until the scroll bar is made proportional to the position again. */
const SETTLE_MS = 150;

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
  const state = useRef({ scrollTop: 0, position: 0 });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [start, setStart] = useState(0);
  const rows = rowsInView(area, start, OVERSCAN_ROWS);
  const anchor = Math.floor(rows.first / ANCHOR_ROWS) * ANCHOR_ROWS;

  const draw = useCallback(() => {
    const { scrollTop, position } = state.current;
    const offset = scrollTop - position + anchor * area.rowHeight;
    layer.current?.style.setProperty('transform', `translateY(${offset}px)`);
    const step = area.rowHeight * STEP_ROWS;
    setStart(Math.floor(position / step) * step);
  }, [anchor, area.rowHeight, layer]);

  const settle = useCallback(() => {
    state.current = stateAt(area, state.current.position);
    if (scroller.current !== null) scroller.current.scrollTop = state.current.scrollTop;
    draw();
  }, [area, draw, scroller]);

  // After a change of the row count or the height, the position may be beyond the end.
  useLayoutEffect(settle, [settle]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const onScroll = () => {
    const { scrollTop } = scroller.current!;
    if (scrollTop === state.current.scrollTop) return;
    state.current = stateAfterScroll(area, state.current, scrollTop);
    // Renders before the browser paints; otherwise the new rows would be missing for a frame.
    flushSync(draw);
    clearTimeout(timer.current);
    timer.current = setTimeout(settle, SETTLE_MS);
  };
  const showRow = (row: number) => {
    const position = positionShowing(area, state.current.position, row);
    if (position === state.current.position) return;
    state.current = stateAt(area, position);
    scroller.current!.scrollTop = state.current.scrollTop;
    draw();
  };
  return { ...rows, anchor, onScroll, showRow };
}
