// Moving, zooming, hovering and selecting on the map, by pointer, touch and keyboard.

import KDBush from 'kdbush';
import {
  type KeyboardEvent,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useElementSize } from '../../ui/use-element-size.js';
import {
  type Camera,
  fitCamera,
  type Position,
  toPlane,
  toScreen,
  type ViewSize,
} from './camera.js';
import type { ColumnColours } from './column-colours.js';
import { HIDDEN, pointFlags } from './point-flags.js';
import {
  changeSelection,
  nearestPoint,
  type PointIndex,
  pointsWithin,
  type SelectionMode,
} from './point-selection.js';
import { useFlight } from './use-flight.js';
import { type Tool, useMapGestures } from './use-map-gestures.js';
import { useMapKeys } from './use-map-keys.js';

/** The maximum distance of the pointer from a hovered point, in CSS pixels. */
const HOVER_PIXELS = 14;
/** No point of a map is farther from the view, unless all points are hidden. */
const NEAREST_PIXELS_MAX = 1e9;
/** With more points, the index is too slow to follow a moving layout. */
const MOVING_POINTS_MAX = 20_000;
/** Longer than the interval between two updates of a layout. */
const INDEX_DELAY_MS = 200;

export interface MapModelProps {
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  /** Whether the positions are about to change again. */
  readonly isMoving: boolean;
  readonly colours: ColumnColours | undefined;
  /** Colour entries whose points are hidden. */
  readonly hidden: ReadonlySet<number>;
  readonly tool: Tool;
  /** A new key fits all points into view. */
  readonly fitKey: string;
  /** Indexes of points. */
  readonly selection: ReadonlySet<number>;
  /** The points that the search has found. */
  readonly found: readonly number[];
  /** A point to fly to; a new object starts a new flight. */
  readonly destination: { readonly point: number } | undefined;
  readonly onSelection: (selection: ReadonlySet<number>) => void;
  /** -1 for none. */
  readonly onHover: (point: number) => void;
}

export interface MapModel {
  readonly camera: Camera;
  /** The scale relative to a view that shows all points. */
  readonly zoomFactor: number;
  readonly size: ViewSize;
  readonly flags: Uint8Array;
  /** The lasso or rectangle, in CSS pixels. */
  readonly line: readonly Position[] | undefined;
  /** Whether the map has keyboard focus. */
  readonly isKeyboard: boolean;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onFocus: () => void;
  readonly onBlur: () => void;
}

export function useMapModel(area: RefObject<HTMLElement | null>, props: MapModelProps): MapModel {
  const { positions, onSelection, onHover } = props;
  const size = useElementSize(area);
  const [line, setLine] = useState<readonly Position[]>();
  const [isKeyboard, setKeyboard] = useState(false);
  const { camera, change, fit, fitted } = useCamera(positions, size, props.fitKey);
  useFlight({ destination: props.destination, positions, fitted, camera, onCamera: change });
  const { flags, pointAt, nearestTo, select, selectWithin } = usePoints(props, camera);
  const plane = (position: Position) => toPlane(camera, size, position);
  useMapGestures(area, {
    size,
    tool: props.tool,
    onCamera: change,
    onHover(position) {
      setKeyboard(false);
      onHover(position === undefined ? -1 : pointAt(plane(position)));
    },
    onClick: (position, mode) => select([pointAt(plane(position))], mode),
    onLine: setLine,
    onLasso: (drawn, mode) => selectWithin(drawn.map(plane), mode),
  });
  const keys = useMapKeys({
    camera,
    size,
    onCamera: change,
    onFit: fit,
    onNearest() {
      const point = nearestTo(camera);
      if (point >= 0) change((before) => ({ ...before, ...positionOf(positions, point) }));
    },
    onPick: (mode) => select([pointAt(camera)], mode),
    onRectangle: selectWithin,
    onClear: () => onSelection(new Set()),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the point at the crosshair changes when the plane moves
  useEffect(() => {
    if (isKeyboard) onHover(pointAt(camera));
  }, [isKeyboard, camera, positions]);
  return {
    camera,
    zoomFactor: camera.scale / fitted.scale,
    size,
    flags,
    line: line ?? keys.rectangle?.map((position) => toScreen(camera, size, position)),
    isKeyboard,
    onKeyDown(event) {
      // Tab only moves the focus.
      if (event.key !== 'Tab') setKeyboard(true);
      keys.onKeyDown(event);
    },
    onFocus: () => setKeyboard(area.current!.matches(':focus-visible')),
    onBlur() {
      setKeyboard(false);
      onHover(-1);
    },
  };
}

/** Finds and selects points; hidden ones are neither found nor selected. */
function usePoints(props: MapModelProps, camera: Camera) {
  const { positions, isMoving, colours, hidden, selection, found, onSelection } = props;
  const pointCount = positions.length / 2;
  const index = usePointIndex(positions);
  const flags = useMemo(
    () => pointFlags(pointCount, { entries: colours?.entries, hidden, selection, found }),
    [pointCount, colours, hidden, selection, found],
  );
  const isShown = (point: number) => (flags[point]! & HIDDEN) === 0;
  const select = (points: readonly number[], mode: SelectionMode) => {
    const shown = points.filter((point) => point >= 0 && isShown(point));
    onSelection(changeSelection(selection, shown, mode));
  };
  return {
    flags,
    select,
    selectWithin: (shape: readonly Position[], mode: SelectionMode) =>
      select(pointsWithin(index(), shape), mode),
    /** The nearest point at any distance; -1 for none. */
    nearestTo: (position: Position) => {
      let point = -1;
      for (let radius = HOVER_PIXELS / camera.scale; point < 0; radius *= 4) {
        if (!(radius * camera.scale < NEAREST_PIXELS_MAX)) break;
        point = nearestPoint(index(), position, radius, isShown);
      }
      return point;
    },
    /** The point under the pointer; -1 for none. */
    pointAt: (position: Position) => {
      if (isMoving && pointCount > MOVING_POINTS_MAX) return -1;
      return nearestPoint(index(), position, HOVER_PIXELS / camera.scale, isShown);
    },
  };
}

export function positionOf(positions: Float32Array, point: number): Position {
  return { x: positions[2 * point]!, y: positions[2 * point + 1]! };
}

/** The camera shows all points, even of a moving layout, until the user changes it. */
function useCamera(positions: Float32Array, { width, height }: ViewSize, fitKey: string) {
  const [chosen, setChosen] = useState<Camera>();
  const fitted = useMemo(() => fitCamera(positions, { width, height }), [positions, width, height]);
  const change = useCallback(
    (next: (camera: Camera) => Camera) => setChosen((before) => next(before ?? fitted)),
    [fitted],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new key resets the camera
  useEffect(() => setChosen(undefined), [fitKey]);
  return { camera: chosen ?? fitted, change, fit: () => setChosen(undefined), fitted };
}

/** Builds the index when the positions have settled, or on first use. */
function usePointIndex(positions: Float32Array): () => PointIndex {
  const index = useRef<PointIndex>(undefined);
  const read = useCallback(() => {
    if (index.current?.positions !== positions) index.current = createPointIndex(positions);
    return index.current;
  }, [positions]);
  useEffect(() => {
    const timer = setTimeout(read, INDEX_DELAY_MS);
    return () => clearTimeout(timer);
  }, [read]);
  return read;
}

function createPointIndex(positions: Float32Array): PointIndex {
  const tree = new KDBush(positions.length / 2, 64, Float32Array);
  for (let at = 0; at < positions.length; at += 2) tree.add(positions[at]!, positions[at + 1]!);
  return { positions, tree: tree.finish() };
}
