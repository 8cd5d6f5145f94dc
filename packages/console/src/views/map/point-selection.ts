// Finds points within a shape or near a position on the map, and changes the selection.

import type KDBush from 'kdbush';
import type { Position } from './camera.js';

/** Positions, row-major [pointCount, 2], and their spatial index. */
export interface PointIndex {
  readonly positions: Float32Array;
  readonly tree: KDBush;
}

/** The points within a closed line, by the even-odd rule. */
export function pointsWithin({ positions, tree }: PointIndex, line: readonly Position[]): number[] {
  const xs = line.map(({ x }) => x);
  const ys = line.map(({ y }) => y);
  const near = tree.range(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys));
  return near.filter((point) => isWithin(line, positions[2 * point]!, positions[2 * point + 1]!));
}

function isWithin(line: readonly Position[], x: number, y: number): boolean {
  let isInside = false;
  for (let at = 0, before = line.length - 1; at < line.length; before = at++) {
    const [a, b] = [line[at]!, line[before]!];
    if (a.y > y === b.y > y) continue;
    if (x < a.x + ((y - a.y) / (b.y - a.y)) * (b.x - a.x)) isInside = !isInside;
  }
  return isInside;
}

/** The shown point nearest to a position within the radius, in units of the plane; -1 for none. */
export function nearestPoint(
  { positions, tree }: PointIndex,
  { x, y }: Position,
  radius: number,
  isShown: (point: number) => boolean,
): number {
  let nearest = -1;
  let best = Number.POSITIVE_INFINITY;
  for (const point of tree.within(x, y, radius)) {
    const distance = (positions[2 * point]! - x) ** 2 + (positions[2 * point + 1]! - y) ** 2;
    if (distance >= best || !isShown(point)) continue;
    best = distance;
    nearest = point;
  }
  return nearest;
}

/** Shift stands for `add`, and Alt for `remove`. */
export type SelectionMode = 'replace' | 'add' | 'remove';

export function changeSelection(
  selection: ReadonlySet<number>,
  points: Iterable<number>,
  mode: SelectionMode,
): ReadonlySet<number> {
  const next = new Set(mode === 'replace' ? [] : selection);
  for (const point of points) {
    if (mode === 'remove') next.delete(point);
    else next.add(point);
  }
  return next;
}
