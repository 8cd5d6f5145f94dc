// The keyboard of the map. While the map has keyboard focus, a crosshair marks its centre: the arrow keys move
// the plane beneath it, N goes to the nearest point, Space selects it, and R starts and ends a rectangle.

import { type KeyboardEvent, useState } from 'react';
import { type Camera, type Position, pan, type ViewSize, zoom } from './camera.js';
import type { SelectionMode } from './point-selection.js';

interface MapKeysOptions {
  readonly camera: Camera;
  readonly size: ViewSize;
  readonly onCamera: (change: (camera: Camera) => Camera) => void;
  readonly onFit: () => void;
  /** Goes to the point nearest to the centre. */
  readonly onNearest: () => void;
  /** Selects the point at the centre. */
  readonly onPick: (mode: SelectionMode) => void;
  /** Selects the points within a line in units of the plane. */
  readonly onRectangle: (line: readonly Position[], mode: SelectionMode) => void;
  readonly onClear: () => void;
}

const STEP_PIXELS = 40;
const LONG_STEP_PIXELS = 160;
const ZOOM_FACTOR = 1.3;

const DIRECTIONS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [1, 0],
  ArrowRight: [-1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

export interface MapKeys {
  readonly onKeyDown: (event: KeyboardEvent) => void;
  /** The unfinished rectangle, as a closed line in units of the plane. */
  readonly rectangle: readonly Position[] | undefined;
}

export function useMapKeys(options: MapKeysOptions): MapKeys {
  const { camera, size, onCamera, onPick, onRectangle, onClear } = options;
  const [corner, setCorner] = useState<Position>();
  const rectangle = corner && rectangleOf(corner, camera);
  const actions: Readonly<Record<string, (mode: SelectionMode) => void>> = {
    '+': () => zoomBy(ZOOM_FACTOR),
    '=': () => zoomBy(ZOOM_FACTOR),
    '-': () => zoomBy(1 / ZOOM_FACTOR),
    '0': options.onFit,
    n: options.onNearest,
    ' ': onPick,
    Enter: onPick,
    r: (mode) => {
      if (rectangle !== undefined) onRectangle(rectangle, mode);
      setCorner(rectangle === undefined ? { x: camera.x, y: camera.y } : undefined);
    },
    Escape: () => {
      if (corner === undefined) onClear();
      setCorner(undefined);
    },
  };
  const zoomBy = (factor: number) => {
    const centre = { x: size.width / 2, y: size.height / 2 };
    onCamera((before) => zoom(before, size, factor, centre));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    const pixels = event.shiftKey ? LONG_STEP_PIXELS : STEP_PIXELS;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (direction !== undefined) {
      onCamera((before) => pan(before, direction[0] * pixels, direction[1] * pixels));
    } else if (action !== undefined) action(event.shiftKey ? 'add' : 'replace');
    else return;
    event.preventDefault();
  };
  return { onKeyDown, rectangle };
}

function rectangleOf(a: Position, b: Position): readonly Position[] {
  return [
    { x: a.x, y: a.y },
    { x: b.x, y: a.y },
    { x: b.x, y: b.y },
    { x: a.x, y: b.y },
  ];
}
