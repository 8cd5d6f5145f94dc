// The density of points in the plane, on a grid that is smoothed with several widths: for the opacity of points, and for
// the dense areas that get labels.

/** Cells along each side of the grid. */
export const GRID_CELLS = 256;
const CELLS = GRID_CELLS * GRID_CELLS;

/** The share of the points at either end of an axis that may lie outside the grid. */
const OUTLIER_SHARE = 0.002;
/** More points would not change the extent visibly. */
const POINTS_PER_EXTENT = 20_000;

export interface DensityGrid {
  /** The cell of each point, [pointCount]; -1 outside the grid. */
  readonly cells: Int32Array;
  /** The side of a cell in units of the plane. */
  readonly cellSize: number;
  /** The number of points per cell, row-major [GRID_CELLS, GRID_CELLS]. */
  readonly counts: Float32Array;
}

/** @param positions row-major [pointCount, 2] */
export function densityGrid(positions: Float32Array): DensityGrid {
  const pointCount = positions.length / 2;
  const [x, y] = [extentOf(positions, 0), extentOf(positions, 1)];
  const width = Math.max(x.max - x.min, y.max - y.min) || 1;
  // One cell of room on each side, so that every peak has neighbours.
  const cellSize = width / (GRID_CELLS - 2);
  const cells = new Int32Array(pointCount).fill(-1);
  const counts = new Float32Array(CELLS);
  for (let point = 0; point < pointCount; point++) {
    const column = 1 + Math.floor((positions[2 * point]! - x.min) / cellSize);
    const row = 1 + Math.floor((positions[2 * point + 1]! - y.min) / cellSize);
    // The point at the very end of an axis belongs to the last cell.
    if (column < 1 || row < 1 || column >= GRID_CELLS || row >= GRID_CELLS) continue;
    const cell = row * GRID_CELLS + column;
    cells[point] = cell;
    counts[cell]!++;
  }
  return { cells, cellSize, counts };
}

function extentOf(positions: Float32Array, axis: number) {
  const pointCount = positions.length / 2;
  const step = Math.max(1, Math.ceil(pointCount / POINTS_PER_EXTENT));
  const values = new Float32Array(Math.ceil(pointCount / step));
  for (let at = 0; at < values.length; at++) values[at] = positions[2 * at * step + axis]!;
  values.sort();
  const outliers = Math.floor(values.length * OUTLIER_SHARE);
  return { min: values[outliers] ?? 0, max: values[values.length - 1 - outliers] ?? 0 };
}

/** Passes of a mean over neighbouring cells; three come close to a Gaussian. */
const PASSES = 3;

/**
 * A smoothed copy of the grid.
 * @param radius cells on each side over which one pass takes the mean
 */
export function smooth(counts: Float32Array, radius: number): Float32Array {
  let from = counts.slice();
  let to = new Float32Array(CELLS);
  for (let pass = 0; pass < PASSES; pass++) {
    for (const [stride, across] of [
      [1, GRID_CELLS],
      [GRID_CELLS, 1],
    ] as const) {
      for (let line = 0; line < GRID_CELLS; line++)
        meanAlong(from, to, line * across, stride, radius);
      [from, to] = [to, from];
    }
  }
  return from;
}

/** The running mean of one line of cells. */
function meanAlong(
  from: Float32Array,
  to: Float32Array,
  start: number,
  stride: number,
  radius: number,
): void {
  const width = 2 * radius + 1;
  let sum = 0;
  for (let at = 0; at < Math.min(radius, GRID_CELLS); at++) sum += from[start + at * stride]!;
  for (let at = 0; at < GRID_CELLS; at++) {
    if (at + radius < GRID_CELLS) sum += from[start + (at + radius) * stride]!;
    if (at - radius - 1 >= 0) sum -= from[start + (at - radius - 1) * stride]!;
    // Differences of floats may fall below 0, which would be a peak's neighbour forever.
    to[start + at * stride] = Math.max(0, sum / width);
  }
}

/** Cells over which the density of a point is smoothed. */
const POINT_RADIUS = 1;

/** Points per unit of area around each point, [pointCount]; 0 outside the grid. */
export function pointDensities({ cells, cellSize, counts }: DensityGrid): Float32Array {
  const smoothed = smooth(counts, POINT_RADIUS);
  const area = cellSize * cellSize;
  return Float32Array.from(cells, (cell) => (cell < 0 ? 0 : smoothed[cell]! / area));
}

export interface DenseAreas {
  /** The area of each cell, [GRID_CELLS * GRID_CELLS]; -1 for empty cells. */
  readonly areaOf: Int32Array;
  /** The cell of the highest density of each area. */
  readonly peaks: readonly number[];
}

/** Lower densities, as a share of the highest, belong to no area. */
const DENSITY_SHARE_MIN = 0.02;

/** Divides the plane into the areas of the peaks: from each cell, the way up leads to the peak of its area. */
export function denseAreas(density: Float32Array): DenseAreas {
  const most = density.reduce((max, value) => Math.max(max, value), 0);
  const areaOf = new Int32Array(CELLS).fill(-1);
  const peaks: number[] = [];
  const path: number[] = [];
  for (let start = 0; start < CELLS; start++) {
    if (density[start]! <= most * DENSITY_SHARE_MIN || areaOf[start]! >= 0) continue;
    let cell = start;
    while (areaOf[cell]! < 0) {
      path.push(cell);
      const next = highestNeighbor(density, cell);
      if (next === cell) {
        areaOf[cell] = peaks.push(cell) - 1;
        break;
      }
      cell = next;
    }
    const area = areaOf[cell]!;
    for (const passed of path.splice(0)) areaOf[passed] = area;
  }
  return { areaOf, peaks };
}

/** The cell itself if it is a peak. Of equal cells the last one is higher, so that the way up ends. */
function highestNeighbor(density: Float32Array, cell: number): number {
  const [row, column] = [Math.floor(cell / GRID_CELLS), cell % GRID_CELLS];
  let best = cell;
  for (let y = Math.max(0, row - 1); y <= Math.min(GRID_CELLS - 1, row + 1); y++) {
    for (let x = Math.max(0, column - 1); x <= Math.min(GRID_CELLS - 1, column + 1); x++) {
      const other = y * GRID_CELLS + x;
      const isHigher = density[other]! > density[best]!;
      if (isHigher || (density[other] === density[best] && other > best)) best = other;
    }
  }
  return best;
}
