// The part of the plane that the map shows: the position of its centre, and pixels per unit. The y axis points
// up in the plane and down on the screen.

export interface Camera {
  readonly x: number;
  readonly y: number;
  /** CSS pixels per unit of the plane. */
  readonly scale: number;
}

/** The size of the canvas in CSS pixels. */
export interface ViewSize {
  readonly width: number;
  readonly height: number;
}

export interface Position {
  readonly x: number;
  readonly y: number;
}

/** The initial margin around the points, as a share of the view. */
const MARGIN_SHARE = 0.06;
const ZOOM_MAX = 1e7;

/** Shows all points, except for a few outliers. */
export function fitCamera(positions: Float32Array, { width, height }: ViewSize): Camera {
  if (positions.length === 0) return { x: 0, y: 0, scale: 1 };
  const [minX, maxX] = extentOf(positions, 0);
  const [minY, maxY] = extentOf(positions, 1);
  const free = 1 - 2 * MARGIN_SHARE;
  const scale = Math.min(
    (width * free) / Math.max(maxX - minX, Number.MIN_VALUE),
    (height * free) / Math.max(maxY - minY, Number.MIN_VALUE),
  );
  // A single point has no extent.
  const isUsable = Number.isFinite(scale) && scale > 0 && scale < ZOOM_MAX;
  return { x: (minX + maxX) / 2, y: (minY + maxY) / 2, scale: isUsable ? scale : 1 };
}

/** More points would not change the extent visibly. */
const POINTS_PER_EXTENT = 4_000;
/** The share of the points at either end that may lie outside the extent. */
const OUTLIER_SHARE = 0.005;
/** The share by which outliers may enlarge the extent. */
const OUTLIER_ROOM = 0.15;

/** @param axis 0 for x, 1 for y */
function extentOf(positions: Float32Array, axis: number): readonly [min: number, max: number] {
  const step = Math.ceil(positions.length / 2 / POINTS_PER_EXTENT);
  const count = Math.ceil(positions.length / 2 / step);
  const values = Float32Array.from({ length: count }, (_, i) => positions[2 * i * step + axis]!);
  values.sort();
  const outliers = Math.floor(count * OUTLIER_SHARE);
  const [low, high] = [values[outliers]!, values[count - 1 - outliers]!];
  const room = (high - low) * OUTLIER_ROOM;
  return [Math.max(values[0]!, low - room), Math.min(values[count - 1]!, high + room)];
}

export function toScreen(
  camera: Camera,
  { width, height }: ViewSize,
  { x, y }: Position,
): Position {
  return {
    x: width / 2 + (x - camera.x) * camera.scale,
    y: height / 2 - (y - camera.y) * camera.scale,
  };
}

export function toPlane(camera: Camera, { width, height }: ViewSize, { x, y }: Position): Position {
  return {
    x: camera.x + (x - width / 2) / camera.scale,
    y: camera.y - (y - height / 2) / camera.scale,
  };
}

/** Moves the view by screen pixels. */
export function pan(camera: Camera, x: number, y: number): Camera {
  return { ...camera, x: camera.x - x / camera.scale, y: camera.y + y / camera.scale };
}

/** Zooms while keeping the screen position `around` fixed. */
export function zoom(camera: Camera, size: ViewSize, factor: number, around: Position): Camera {
  const scale = Math.min(ZOOM_MAX, Math.max(1 / ZOOM_MAX, camera.scale * factor));
  const before = toPlane(camera, size, around);
  const after = toPlane({ ...camera, scale }, size, around);
  return { x: camera.x + before.x - after.x, y: camera.y + before.y - after.y, scale };
}

interface CloseView {
  readonly camera: Camera;
  /** The camera that shows all points. */
  readonly fitted: Camera;
  readonly pointCount: number;
}

/** The most that a flight zooms in; beyond it one sees nothing of the surroundings. */
const CLOSE_ZOOM_MAX = 12;

/** A view of a point and some hundred others around it. Never zooms out. */
export function closeCamera(position: Position, { camera, fitted, pointCount }: CloseView): Camera {
  const factor = Math.min(CLOSE_ZOOM_MAX, Math.max(2, Math.sqrt(pointCount) / 20));
  return { ...position, scale: Math.max(camera.scale, fitted.scale * factor) };
}

/** The camera at a share of the way, slower at both ends. */
export function cameraBetween(from: Camera, to: Camera, share: number): Camera {
  const eased = share * share * (3 - 2 * share);
  const between = (a: number, b: number) => a + (b - a) * eased;
  return {
    x: between(from.x, to.x),
    y: between(from.y, to.y),
    // Equal factors in equal times look steady.
    scale: from.scale * (to.scale / from.scale) ** eased,
  };
}

/** The diameter of a point in CSS pixels: smaller if there are many points, larger when zoomed in. */
export function pointDiameter(pointCount: number, zoomFactor: number): number {
  const base = pointCount > 100_000 ? 2.5 : pointCount > 20_000 ? 3.5 : pointCount > 4_000 ? 5 : 7;
  return Math.min(18, base * Math.max(1, zoomFactor) ** 0.35);
}
