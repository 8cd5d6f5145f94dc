// Flags of points: hidden by the legend, selected, or found by the search.

/** Bits of a point's flags; the shaders use the same values. */
export const HIDDEN = 1;
const SELECTED = 2;
const FOUND = 4;

interface PointMarks {
  /** Palette entries, [pointCount]. */
  readonly entries: Uint8Array | undefined;
  readonly hidden: ReadonlySet<number>;
  readonly selection: ReadonlySet<number>;
  readonly found: readonly number[];
}

/** The flags of all points, [pointCount]. */
export function pointFlags(
  pointCount: number,
  { entries, hidden, selection, found }: PointMarks,
): Uint8Array {
  const flags = new Uint8Array(pointCount);
  if (entries !== undefined && hidden.size > 0) {
    for (let point = 0; point < pointCount; point++) {
      if (hidden.has(entries[point]!)) flags[point] = HIDDEN;
    }
  }
  for (const point of selection) flags[point]! |= SELECTED;
  for (const point of found) flags[point]! |= FOUND;
  return flags;
}
