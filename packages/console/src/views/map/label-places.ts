// Places the labels of dense areas on the screen: those for the zoom, inside the view and without overlaps.

import type { AreaLabel } from './area-labels.js';
import type { Position, ViewSize } from './camera.js';

export interface PlacedLabel extends Position {
  readonly label: AreaLabel;
}

export interface LabelView {
  readonly size: ViewSize;
  /** The scale relative to a view that shows all points. */
  readonly zoomFactor: number;
  /** The position of a point on the screen. */
  readonly positionOf: (point: number) => Position;
  /** Palette entries whose labels are not shown. */
  readonly hidden: ReadonlySet<number>;
}

/** The estimated size of a label, in CSS pixels. */
const LABEL_HEIGHT = 24;
const CHARACTER_WIDTH = 7;
const LABEL_PADDING = 18;
const LABEL_WIDTH_MAX = 208;
const EDGE = 4;

/** Labels of larger areas take precedence. Positions are in CSS pixels. */
export function placeLabels(labels: readonly AreaLabel[], view: LabelView): PlacedLabel[] {
  const { size, zoomFactor, positionOf, hidden } = view;
  const placed: PlacedLabel[] = [];
  for (const label of byPrecedence(labels)) {
    if (label.zoomMin > zoomFactor) continue;
    if (label.entry !== undefined && hidden.has(label.entry)) continue;
    const { x, y } = positionOf(label.point);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    const place = { label, ...inside({ x, y }, label, size) };
    if (placed.every((other) => !overlap(place, other))) placed.push(place);
  }
  return placed;
}

function byPrecedence(labels: readonly AreaLabel[]): AreaLabel[] {
  return [...labels].sort((a, b) => a.zoomMin - b.zoomMin || b.count - a.count);
}

/** Moves a label whose point is in view, so that it is not cut off. */
function inside({ x, y }: Position, label: AreaLabel, { width, height }: ViewSize): Position {
  const [halfWidth, halfHeight] = [widthOf(label) / 2 + EDGE, LABEL_HEIGHT / 2 + EDGE];
  return {
    x: Math.max(halfWidth, Math.min(width - halfWidth, x)),
    y: Math.max(halfHeight, Math.min(height - halfHeight, y)),
  };
}

function overlap(a: PlacedLabel, b: PlacedLabel): boolean {
  const room = (widthOf(a.label) + widthOf(b.label)) / 2;
  return Math.abs(a.x - b.x) < room && Math.abs(a.y - b.y) < LABEL_HEIGHT;
}

function widthOf({ text }: AreaLabel): number {
  return Math.min(LABEL_WIDTH_MAX, text.length * CHARACTER_WIDTH + LABEL_PADDING);
}
