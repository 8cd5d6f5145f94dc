// Which points lie within a shape on the map, and how a selection changes.

import type KDBush from 'kdbush';
import type { Place } from './camera.js';

/** Row-major [pointCount, 2] positions with their index. */
export interface PointIndex {
  readonly positions: Float32Array;
  readonly tree: KDBush;
}

/** The points within the closed line; crossings count by the even-odd rule. */
export function pointsWithin({ positions, tree }: PointIndex, line: readonly Place[]): number[] {
  const xs = line.map(({ x }) => x);
  const ys = line.map(({ y }) => y);
  const near = tree.range(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys));
  return near.filter((point) => isWithin(line, positions[2 * point]!, positions[2 * point + 1]!));
}

function isWithin(line: readonly Place[], x: number, y: number): boolean {
  let isInside = false;
  for (let at = 0, before = line.length - 1; at < line.length; before = at++) {
    const [a, b] = [line[at]!, line[before]!];
    if (a.y > y === b.y > y) continue;
    if (x < a.x + ((y - a.y) / (b.y - a.y)) * (b.x - a.x)) isInside = !isInside;
  }
  return isInside;
}

/** The point nearest to the place within the radius, in units of the plane; -1 for none. */
export function nearestPoint(
  { positions, tree }: PointIndex,
  { x, y }: Place,
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

/** `add` and `remove` are for Shift and Alt. */
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
