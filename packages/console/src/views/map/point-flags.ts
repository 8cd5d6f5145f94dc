// Flags of points (hidden by the legend, selected) and the positions of the category labels.

import type { Position } from './camera.js';
import { type ColumnColours, MISSING_ENTRY, OTHER_ENTRY } from './column-colours.js';

/** Bits of a point's flags; the shaders use the same values. */
export const HIDDEN = 1;
const SELECTED = 2;

/** The flags of all points, [pointCount]. */
export function pointFlags(
  pointCount: number,
  entries: Uint8Array | undefined,
  hidden: ReadonlySet<number>,
  selection: ReadonlySet<number>,
): Uint8Array {
  const flags = new Uint8Array(pointCount);
  if (entries !== undefined && hidden.size > 0) {
    for (let point = 0; point < pointCount; point++) {
      if (hidden.has(entries[point]!)) flags[point] = HIDDEN;
    }
  }
  for (const point of selection) flags[point]! |= SELECTED;
  return flags;
}

export interface PlacedLabel extends Position {
  readonly entry: number;
  readonly label: string;
  /** The number of points in the category. */
  readonly count: number;
}

/** More points would not move a median visibly. */
const POINTS_PER_MEDIAN = 500;

/** The labels of the visible categories, each at the median of its points. */
export function placeLabels(
  positions: Float32Array,
  colours: ColumnColours,
  hidden: ReadonlySet<number>,
): PlacedLabel[] {
  if (colours.kind === 'scale') return [];
  const shown = colours.legend.filter(
    ({ entry }) => entry !== OTHER_ENTRY && entry !== MISSING_ENTRY && !hidden.has(entry),
  );
  return shown.map(({ entry, label, count }) => {
    const step = Math.ceil(count / POINTS_PER_MEDIAN);
    const points = everyPoint(colours.entries, entry, step);
    return {
      entry,
      label,
      count,
      x: median(points.map((point) => positions[2 * point]!)),
      y: median(points.map((point) => positions[2 * point + 1]!)),
    };
  });
}

/** The estimated size of a label, in CSS pixels. */
const LABEL_HEIGHT = 22;
const CHARACTER_WIDTH = 7;
const LABEL_PADDING = 16;
const LABEL_WIDTH_MAX = 192;

/** Drops labels that would cover the label of a larger category. Positions are in CSS pixels. */
export function withoutOverlaps(labels: readonly PlacedLabel[]): PlacedLabel[] {
  const placed: PlacedLabel[] = [];
  for (const label of [...labels].sort((a, b) => b.count - a.count)) {
    const isFree = placed.every((other) => {
      const room = (widthOf(label) + widthOf(other)) / 2;
      return Math.abs(label.x - other.x) > room || Math.abs(label.y - other.y) > LABEL_HEIGHT;
    });
    if (isFree) placed.push(label);
  }
  return placed;
}

function widthOf({ label }: PlacedLabel): number {
  return Math.min(LABEL_WIDTH_MAX, label.length * CHARACTER_WIDTH + LABEL_PADDING);
}

/** Every `step`-th point with the entry. */
function everyPoint(entries: Uint8Array, entry: number, step: number): number[] {
  const points: number[] = [];
  let seen = 0;
  for (let point = 0; point < entries.length; point++) {
    if (entries[point] === entry && seen++ % step === 0) points.push(point);
  }
  return points;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}
