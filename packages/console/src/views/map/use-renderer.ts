// Uploads changes of the map to the renderer and draws it. Recreates the renderer after a lost WebGL context.

import { type RefObject, useEffect, useLayoutEffect, useState } from 'react';
import { type Camera, pointDiameter, type ViewSize } from './camera.js';
import { paletteOf } from './palette.js';
import { createPointRenderer, type PointRenderer } from './point-renderer.js';

export interface Picture {
  readonly camera: Camera;
  /** The scale relative to a view that shows all points. */
  readonly zoomFactor: number;
  readonly size: ViewSize;
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  /** [pointCount]; undefined for one colour. */
  readonly entries: Uint8Array | undefined;
  readonly flags: Uint8Array;
  readonly hasSelection: boolean;
  readonly theme: 'light' | 'dark';
}

const RINGS = { light: [0.06, 0.08, 0.14], dark: [1, 1, 1] } as const;

/** Returns false if the browser does not support WebGL 2. */
export function useRenderer(
  canvas: RefObject<HTMLCanvasElement | null>,
  picture: Picture,
): boolean {
  const { camera, zoomFactor, size, positions, entries, flags, hasSelection, theme } = picture;
  const [renderer, setRenderer] = useState<PointRenderer | null>();
  useEffect(() => {
    const element = canvas.current!;
    const create = () => setRenderer(createPointRenderer(element) ?? null);
    // Without preventDefault, the browser would not restore the context.
    const keep = (event: Event) => event.preventDefault();
    element.addEventListener('webglcontextlost', keep);
    element.addEventListener('webglcontextrestored', create);
    create();
    return () => {
      element.removeEventListener('webglcontextlost', keep);
      element.removeEventListener('webglcontextrestored', create);
    };
  }, [canvas]);
  useLayoutEffect(() => renderer?.setPalette(paletteOf(theme)), [renderer, theme]);
  useLayoutEffect(() => renderer?.setPositions(positions), [renderer, positions]);
  useLayoutEffect(() => renderer?.setFlags(flags), [renderer, flags]);
  useLayoutEffect(
    () => renderer?.setEntries(entries ?? new Uint8Array(positions.length / 2)),
    [renderer, entries, positions.length],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effects above upload what is drawn here
  useLayoutEffect(() => {
    if (size.width === 0 || size.height === 0) return;
    const diameter = pointDiameter(positions.length / 2, zoomFactor);
    renderer?.draw({ camera, size, diameter, dims: hasSelection, ring: RINGS[theme] });
  }, [renderer, camera, zoomFactor, size, positions, entries, flags, hasSelection, theme]);
  return renderer !== null;
}
