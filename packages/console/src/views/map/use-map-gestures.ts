// Pointers and the wheel on the map: drag to move, wheel or two fingers to zoom, click to select, and a
// line drawn around points with the lasso.

import { type RefObject, useEffect, useRef } from 'react';
import { type Camera, type Place, pan, type ViewSize, zoom } from './camera.js';
import type { SelectionMode } from './point-selection.js';

/** What dragging does. */
export type Tool = 'pan' | 'lasso';

export interface MapGestures {
  readonly size: ViewSize;
  readonly tool: Tool;
  readonly onCamera: (change: (camera: Camera) => Camera) => void;
  /** The pointer is at a place of the canvas, in CSS pixels; undefined when it has left or drags. */
  readonly onHover: (place: Place | undefined) => void;
  readonly onClick: (place: Place, mode: SelectionMode) => void;
  /** The line so far, in CSS pixels; undefined when it has ended. */
  readonly onLine: (line: readonly Place[] | undefined) => void;
  readonly onLasso: (line: readonly Place[], mode: SelectionMode) => void;
}

/** A pointer that moves less between down and up has clicked. */
const CLICK_PIXELS = 4;
const WHEEL_FACTOR = 1.0015;
/** A wheel that counts lines moves so many pixels per line. */
const LINE_PIXELS = 16;

interface Drag {
  readonly start: Place;
  readonly line: Place[];
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
  const pointers = new Map<number, Place>();
  let drag: Drag | undefined;
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const place = placeOf(element, event);
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place);
    const isLasso = gestures().tool === 'lasso' || event.shiftKey;
    drag =
      pointers.size === 1 ? { start: place, line: [place], isLasso, hasMoved: false } : undefined;
    gestures().onLine(undefined);
    gestures().onHover(undefined);
  };
  const onMove = (event: PointerEvent) => {
    const place = placeOf(element, event);
    const before = pointers.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === 'mouse') gestures().onHover(place);
      return;
    }
    if (pointers.size === 2) pinch(pointers, event.pointerId, place, gestures());
    pointers.set(event.pointerId, place);
    if (drag === undefined) return;
    drag.hasMoved ||= distance(drag.start, place) >= CLICK_PIXELS;
    if (!drag.hasMoved) return;
    if (drag.isLasso) {
      drag.line.push(place);
      gestures().onLine([...drag.line]);
    } else gestures().onCamera((camera) => pan(camera, place.x - before.x, place.y - before.y));
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
    const place = placeOf(element, event);
    onCamera((camera) => zoom(camera, size, WHEEL_FACTOR ** -pixels, place));
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

/** Zooms by the change of the distance of two fingers, and moves with their middle. */
function pinch(
  pointers: ReadonlyMap<number, Place>,
  moved: number,
  place: Place,
  { size, onCamera }: MapGestures,
): void {
  const before = pointers.get(moved)!;
  const [, other] = [...pointers].find(([pointer]) => pointer !== moved)!;
  const factor = distance(place, other) / Math.max(1, distance(before, other));
  const middle = { x: (place.x + other.x) / 2, y: (place.y + other.y) / 2 };
  onCamera((camera) => {
    const moving = pan(camera, (place.x - before.x) / 2, (place.y - before.y) / 2);
    return zoom(moving, size, factor, middle);
  });
}

/** With Shift points are added by a click; with Ctrl they are added, with Alt taken away. */
function modeOf(event: PointerEvent, withShift: SelectionMode): SelectionMode {
  if (event.altKey) return 'remove';
  if (event.ctrlKey || event.metaKey) return 'add';
  return event.shiftKey ? withShift : 'replace';
}

function placeOf(element: HTMLElement, event: MouseEvent): Place {
  const { left, top } = element.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

function distance(a: Place, b: Place): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
