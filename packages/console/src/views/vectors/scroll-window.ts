// Which rows of a long table are in view. Browsers limit the height of an element, so beyond that the
// height is scaled: small movements go row by row, and only long jumps of the scroll bar are scaled.

/** Firefox stops at 17.8 million pixels, Chrome with two device pixels per pixel at 16.7 million. */
const CONTENT_HEIGHT_MAX = 8_000_000;

/** Movements below so many viewports are of a wheel, a finger or a key; above, of the scroll bar. */
const NUDGE_VIEWPORTS = 3;

export interface ScrollArea {
  readonly rowCount: number;
  /** Pixels. */
  readonly rowHeight: number;
  readonly viewportHeight: number;
}

/** Where the table is: the scroll offset of the element, and what that stands for in unscaled pixels. */
export interface ScrollPlace {
  readonly scrollTop: number;
  readonly position: number;
}

/** The height of the element that scrolls. */
export function contentHeight({ rowCount, rowHeight }: ScrollArea): number {
  return Math.min(rowCount * rowHeight, CONTENT_HEIGHT_MAX);
}

export function placeAfterScroll(
  area: ScrollArea,
  before: ScrollPlace,
  scrollTop: number,
): ScrollPlace {
  if (!isScaled(area)) return { scrollTop, position: scrollTop };
  const moved = scrollTop - before.scrollTop;
  const isNudge = Math.abs(moved) < area.viewportHeight * NUDGE_VIEWPORTS;
  const position = isNudge ? before.position + moved : scrollTop / scaleOf(area);
  // Between pixels, text would be blurred.
  return { scrollTop, position: Math.round(clamp(position, positionMax(area))) };
}

/** The place of a position, with the scroll offset that is in proportion to it. */
export function placeOf(area: ScrollArea, position: number): ScrollPlace {
  const clamped = clamp(position, positionMax(area));
  const scrollTop = isScaled(area) ? Math.round(clamped * scaleOf(area)) : clamped;
  return { scrollTop, position: clamped };
}

/** The position nearest to the present one at which the row is in view as a whole. */
export function positionShowing(area: ScrollArea, position: number, row: number): number {
  const top = row * area.rowHeight;
  const bottom = top + area.rowHeight - area.viewportHeight;
  return Math.max(Math.min(position, top), bottom, 0);
}

/** The rows in view and `overscan` on both sides, `last` being the first that is not. */
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

/** Pixels of the scroll offset per unscaled pixel. */
function scaleOf(area: ScrollArea): number {
  return (contentHeight(area) - area.viewportHeight) / positionMax(area);
}

function positionMax({ rowCount, rowHeight, viewportHeight }: ScrollArea): number {
  return Math.max(0, rowCount * rowHeight - viewportHeight);
}

function clamp(value: number, max: number): number {
  return Math.min(Math.max(value, 0), max);
}
