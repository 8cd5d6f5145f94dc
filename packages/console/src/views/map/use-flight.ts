// Flies to a point of the map: moves and zooms the camera in a short animation, or at once for people who prefer no
// motion.

import { useEffect } from 'react';
import { type Camera, cameraBetween, closeCamera } from './camera.js';

interface FlightOptions {
  /** A new object starts a new flight. */
  readonly destination: { readonly point: number } | undefined;
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  readonly camera: Camera;
  /** The camera that shows all points. */
  readonly fitted: Camera;
  readonly onCamera: (change: (camera: Camera) => Camera) => void;
}

const FLIGHT_MS = 450;

export function useFlight({ destination, positions, camera, fitted, onCamera }: FlightOptions) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a flight goes from where it begins to where the point was then
  useEffect(() => {
    if (destination === undefined) return;
    const { point } = destination;
    const position = { x: positions[2 * point]!, y: positions[2 * point + 1]! };
    const end = closeCamera(position, { camera, fitted, pointCount: positions.length / 2 });
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      onCamera(() => end);
      return;
    }
    const startMs = performance.now();
    let frame = requestAnimationFrame(function move(nowMs) {
      const share = Math.min(1, Math.max(0, (nowMs - startMs) / FLIGHT_MS));
      onCamera(() => cameraBetween(camera, end, share));
      if (share < 1) frame = requestAnimationFrame(move);
    });
    return () => cancelAnimationFrame(frame);
  }, [destination]);
}
