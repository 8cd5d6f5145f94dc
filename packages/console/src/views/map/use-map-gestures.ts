// Pointer and wheel gestures on the map: drag to move, wheel or two fingers to zoom, click to select, and draw a
// lasso around points.

import { type RefObject, useEffect, useRef } from 'react';
import { type Camera, type Position, pan, type ViewSize, zoom } from './camera.js';
import type { SelectionMode } from './point-selection.js';

/** The effect of dragging. */
export type Tool = 'pan' | 'lasso';

export interface MapGestures {
  readonly size: ViewSize;
  readonly tool: Tool;
  readonly onCamera: (change: (camera: Camera) => Camera) => void;
  /** The position of the pointer on the canvas, in CSS pixels; undefined when it has left or is dragging. */
  readonly onHover: (position: Position | undefined) => void;
  readonly onClick: (position: Position, mode: SelectionMode) => void;
  /** The line drawn so far, in CSS pixels; undefined when it has ended. */
  readonly onLine: (line: readonly Position[] | undefined) => void;
  readonly onLasso: (line: readonly Position[], mode: SelectionMode) => void;
}

/** A pointer that moves less than this between down and up has clicked. */
const CLICK_PIXELS = 4;
const WHEEL_FACTOR = 1.0015;
/** Pixels per line, for wheels that report lines. */
const LINE_PIXELS = 16;

interface Drag {
  readonly start: Position;
  readonly line: Position[];
  readonly isLasso: boolean;
  hasMoved: boolean;
}

export function useMapGestures(area: RefObject<HTMLElement | null>, gestures: MapGestures): void {
  const current = useRef(gestures);
  current.current = gestures;
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    return listen(element, () => current.current);
  }, [area]);
}

function listen(element: HTMLElement, gestures: () => MapGestures): () => void {
  const pointers = new Map<number, Position>();
  let drag: Drag | undefined;
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const position = pointerPosition(element, event);
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, position);
    const isLasso = gestures().tool === 'lasso' || event.shiftKey;
    drag =
      pointers.size === 1
        ? { start: position, line: [position], isLasso, hasMoved: false }
        : undefined;
    gestures().onLine(undefined);
    gestures().onHover(undefined);
  };
  const onMove = (event: PointerEvent) => {
    const position = pointerPosition(element, event);
    const before = pointers.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === 'mouse') gestures().onHover(position);
      return;
    }
    if (pointers.size === 2) pinch(pointers, event.pointerId, position, gestures());
    pointers.set(event.pointerId, position);
    if (drag === undefined) return;
    drag.hasMoved ||= distance(drag.start, position) >= CLICK_PIXELS;
    if (!drag.hasMoved) return;
    if (drag.isLasso) {
      drag.line.push(position);
      gestures().onLine([...drag.line]);
    } else
      gestures().onCamera((camera) => pan(camera, position.x - before.x, position.y - before.y));
  };
  const onUp = (event: PointerEvent) => {
    pointers.delete(event.pointerId);
    const ended = drag;
    drag = undefined;
    gestures().onLine(undefined);
    if (ended === undefined || event.type === 'pointercancel') return;
    if (!ended.hasMoved) gestures().onClick(ended.start, modeOf(event, 'add'));
    else if (ended.isLasso) gestures().onLasso(ended.line, modeOf(event, 'replace'));
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1);
    const { size, onCamera } = gestures();
    const position = pointerPosition(element, event);
    onCamera((camera) => zoom(camera, size, WHEEL_FACTOR ** -pixels, position));
  };
  const onLeave = () => gestures().onHover(undefined);
  const listeners = [
    ['pointerdown', onDown],
    ['pointermove', onMove],
    ['pointerup', onUp],
    ['pointercancel', onUp],
    ['pointerleave', onLeave],
    ['wheel', onWheel],
  ] as const;
  for (const [type, listener] of listeners) {
    element.addEventListener(type, listener as EventListener, { passive: false });
  }
  return () => {
    for (const [type, listener] of listeners) {
      element.removeEventListener(type, listener as EventListener);
    }
  };
}

/** Zooms by the changed distance of two fingers, and moves with their midpoint. */
function pinch(
  pointers: ReadonlyMap<number, Position>,
  moved: number,
  position: Position,
  { size, onCamera }: MapGestures,
): void {
  const before = pointers.get(moved)!;
  const [, other] = [...pointers].find(([pointer]) => pointer !== moved)!;
  const factor = distance(position, other) / Math.max(1, distance(before, other));
  const middle = { x: (position.x + other.x) / 2, y: (position.y + other.y) / 2 };
  onCamera((camera) => {
    const moving = pan(camera, (position.x - before.x) / 2, (position.y - before.y) / 2);
    return zoom(moving, size, factor, middle);
  });
}

/** Ctrl adds points and Alt removes them. Shift adds them on click; while dragging it selects the lasso. */
function modeOf(event: PointerEvent, withShift: SelectionMode): SelectionMode {
  if (event.altKey) return 'remove';
  if (event.ctrlKey || event.metaKey) return 'add';
  return event.shiftKey ? withShift : 'replace';
}

function pointerPosition(element: HTMLElement, event: MouseEvent): Position {
  const { left, top } = element.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

function distance(a: Position, b: Position): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
