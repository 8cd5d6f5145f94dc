// Computes the visible rows of a long table. Browsers limit the height of elements, so the height of longer tables is
// scaled: small movements go row by row, and only long jumps of the scroll bar are scaled.

/** Below the limits of Firefox (17.8 million pixels) and of Chrome on dense screens (16.7 million). */
const CONTENT_HEIGHT_MAX = 8_000_000;

/** Movements of fewer viewports come from a wheel, a finger or a key; longer ones come from the scroll bar. */
const NUDGE_VIEWPORTS = 3;

export interface ScrollArea {
  readonly rowCount: number;
  /** Pixels. */
  readonly rowHeight: number;
  readonly viewportHeight: number;
}

/** The scroll offset of the element, and the corresponding position in unscaled pixels. */
export interface ScrollState {
  readonly scrollTop: number;
  readonly position: number;
}

/** The height of the scrolled element. */
export function contentHeight({ rowCount, rowHeight }: ScrollArea): number {
  return Math.min(rowCount * rowHeight, CONTENT_HEIGHT_MAX);
}

export function stateAfterScroll(
  area: ScrollArea,
  before: ScrollState,
  scrollTop: number,
): ScrollState {
  if (!isScaled(area)) return { scrollTop, position: scrollTop };
  const moved = scrollTop - before.scrollTop;
  const isNudge = Math.abs(moved) < area.viewportHeight * NUDGE_VIEWPORTS;
  const position = isNudge ? before.position + moved : scrollTop / scaleOf(area);
  // Fractional pixels would blur text.
  return { scrollTop, position: Math.round(clamp(position, positionMax(area))) };
}

/** The scroll state for a position, with a proportional scroll offset. */
export function stateAt(area: ScrollArea, position: number): ScrollState {
  const clamped = clamp(position, positionMax(area));
  const scrollTop = isScaled(area) ? Math.round(clamped * scaleOf(area)) : clamped;
  return { scrollTop, position: clamped };
}

/** The position nearest to the current one that shows the whole row. */
export function positionShowing(area: ScrollArea, position: number, row: number): number {
  const top = row * area.rowHeight;
  const bottom = top + area.rowHeight - area.viewportHeight;
  return Math.max(Math.min(position, top), bottom, 0);
}

/** The visible rows with `overscan` more on both sides, as [first, last). */
export function rowsInView(
  { rowCount, rowHeight, viewportHeight }: ScrollArea,
  position: number,
  overscan: number,
): { readonly first: number; readonly last: number } {
  const first = Math.floor(position / rowHeight) - overscan;
  const last = Math.ceil((position + viewportHeight) / rowHeight) + overscan;
  return { first: clamp(first, rowCount), last: clamp(last, rowCount) };
}

function isScaled(area: ScrollArea): boolean {
  return area.rowCount * area.rowHeight > CONTENT_HEIGHT_MAX;
}

/** Scroll offset per unscaled pixel. */
function scaleOf(area: ScrollArea): number {
  return (contentHeight(area) - area.viewportHeight) / positionMax(area);
}

function positionMax({ rowCount, rowHeight, viewportHeight }: ScrollArea): number {
  return Math.max(0, rowCount * rowHeight - viewportHeight);
}

function clamp(value: number, max: number): number {
  return Math.min(Math.max(value, 0), max);
}
