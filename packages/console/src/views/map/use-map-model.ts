// What moves, zooms, hovers and selects on the map, by pointer, touch and keyboard.

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
import { type Camera, fitCamera, type Place, toPlane, toScreen, type ViewSize } from './camera.js';
import type { ColumnColours } from './column-colours.js';
import { HIDDEN, pointFlags } from './point-flags.js';
import {
  changeSelection,
  nearestPoint,
  type PointIndex,
  pointsWithin,
  type SelectionMode,
} from './point-selection.js';
import { useElementSize } from './use-element-size.js';
import { type Tool, useMapGestures } from './use-map-gestures.js';
import { useMapKeys } from './use-map-keys.js';

/** So near to a point the pointer has to be, in CSS pixels. */
const HOVER_PIXELS = 14;
/** No point of a map is farther from what is shown, unless all are hidden. */
const NEAREST_PIXELS_MAX = 1e9;
/** With more points the index takes too long to follow a layout that moves. */
const MOVING_POINTS_MAX = 20_000;
/** Longer than from one update of a layout to the next. */
const REST_MS = 200;

export interface MapModelProps {
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  /** The positions will change again at once. */
  readonly isMoving: boolean;
  readonly colours: ColumnColours | undefined;
  /** Entries of the colours whose points are not shown. */
  readonly hidden: ReadonlySet<number>;
  readonly tool: Tool;
  /** Another one shows all points again. */
  readonly fitKey: string;
  /** Indexes of points. */
  readonly selection: ReadonlySet<number>;
  readonly onSelection: (selection: ReadonlySet<number>) => void;
  /** -1 for none. */
  readonly onHover: (point: number) => void;
}

export interface MapModel {
  readonly camera: Camera;
  /** How much larger things are than when all points are shown. */
  readonly zoomFactor: number;
  readonly size: ViewSize;
  readonly flags: Uint8Array;
  /** The lasso or rectangle, in CSS pixels. */
  readonly line: readonly Place[] | undefined;
  /** The map has the focus by keyboard. */
  readonly isKeyboard: boolean;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onFocus: () => void;
  readonly onBlur: () => void;
}

export function useMapModel(area: RefObject<HTMLElement | null>, props: MapModelProps): MapModel {
  const { positions, onSelection, onHover } = props;
  const size = useElementSize(area);
  const [line, setLine] = useState<readonly Place[]>();
  const [isKeyboard, setKeyboard] = useState(false);
  const { camera, change, fit, fitted } = useCamera(positions, size, props.fitKey);
  const { flags, pointAt, nearestTo, select, selectWithin } = usePoints(props, camera);
  const plane = (place: Place) => toPlane(camera, size, place);
  useMapGestures(area, {
    size,
    tool: props.tool,
    onCamera: change,
    onHover(place) {
      setKeyboard(false);
      onHover(place === undefined ? -1 : pointAt(plane(place)));
    },
    onClick: (place, mode) => select([pointAt(plane(place))], mode),
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
      if (point >= 0) change((before) => ({ ...before, ...placeOf(positions, point) }));
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
    line: line ?? keys.rectangle?.map((place) => toScreen(camera, size, place)),
    isKeyboard,
    onKeyDown(event) {
      // Tab only passes through.
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
  const { positions, isMoving, colours, hidden, selection, onSelection } = props;
  const pointCount = positions.length / 2;
  const index = usePointIndex(positions);
  const flags = useMemo(
    () => pointFlags(pointCount, colours?.entries, hidden, selection),
    [pointCount, colours, hidden, selection],
  );
  const isShown = (point: number) => (flags[point]! & HIDDEN) === 0;
  const select = (points: readonly number[], mode: SelectionMode) => {
    const shown = points.filter((point) => point >= 0 && isShown(point));
    onSelection(changeSelection(selection, shown, mode));
  };
  return {
    flags,
    select,
    selectWithin: (shape: readonly Place[], mode: SelectionMode) =>
      select(pointsWithin(index(), shape), mode),
    /** However far away. -1 for none. */
    nearestTo: (place: Place) => {
      let point = -1;
      for (let radius = HOVER_PIXELS / camera.scale; point < 0; radius *= 4) {
        if (!(radius * camera.scale < NEAREST_PIXELS_MAX)) break;
        point = nearestPoint(index(), place, radius, isShown);
      }
      return point;
    },
    /** -1 for none. */
    pointAt: (place: Place) => {
      if (isMoving && pointCount > MOVING_POINTS_MAX) return -1;
      return nearestPoint(index(), place, HOVER_PIXELS / camera.scale, isShown);
    },
  };
}

export function placeOf(positions: Float32Array, point: number): Place {
  return { x: positions[2 * point]!, y: positions[2 * point + 1]! };
}

/** The camera shows all points, also of a layout that moves, until the user changes it. */
function useCamera(positions: Float32Array, { width, height }: ViewSize, fitKey: string) {
  const [chosen, setChosen] = useState<Camera>();
  const fitted = useMemo(() => fitCamera(positions, { width, height }), [positions, width, height]);
  const change = useCallback(
    (next: (camera: Camera) => Camera) => setChosen((before) => next(before ?? fitted)),
    [fitted],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has no other meaning
  useEffect(() => setChosen(undefined), [fitKey]);
  return { camera: chosen ?? fitted, change, fit: () => setChosen(undefined), fitted };
}

/** Made when the positions have come to rest, or when it is asked for before. */
function usePointIndex(positions: Float32Array): () => PointIndex {
  const index = useRef<PointIndex>(undefined);
  const read = useCallback(() => {
    if (index.current?.positions !== positions) index.current = createPointIndex(positions);
    return index.current;
  }, [positions]);
  useEffect(() => {
    const timer = setTimeout(read, REST_MS);
    return () => clearTimeout(timer);
  }, [read]);
  return read;
}

function createPointIndex(positions: Float32Array): PointIndex {
  const tree = new KDBush(positions.length / 2, 64, Float32Array);
  for (let at = 0; at < positions.length; at += 2) tree.add(positions[at]!, positions[at + 1]!);
  return { positions, tree: tree.finish() };
}
