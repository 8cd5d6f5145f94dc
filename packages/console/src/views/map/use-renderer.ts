// Uploads changes of the map to the renderer and draws it. Recreates the renderer after a lost WebGL context.

import { type RefObject, useEffect, useLayoutEffect, useMemo, useState } from 'react';
import { type Camera, pointDiameter, type ViewSize } from './camera.js';
import { OTHER_ENTRY } from './column-colours.js';
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
  /** Whether the entries are still to come: until then the points are grey. */
  readonly isColouring: boolean;
  readonly flags: Uint8Array;
  /** Whether some points are selected or found. */
  readonly hasMarks: boolean;
  /** Points per unit of area around each point, [pointCount]; undefined until they have been computed. */
  readonly densities: Float32Array | undefined;
  readonly theme: 'light' | 'dark';
}

const RINGS = {
  light: { selection: [0.06, 0.08, 0.14], match: [0.85, 0.1, 0.35] },
  dark: { selection: [1, 1, 1], match: [1, 0.85, 0.3] },
} as const;

/** Returns false if the browser does not support WebGL 2. */
export function useRenderer(
  canvas: RefObject<HTMLCanvasElement | null>,
  picture: Picture,
): boolean {
  const { camera, zoomFactor, size, positions, entries, flags, hasMarks, theme } = picture;
  const { densities, isColouring } = picture;
  const pointCount = positions.length / 2;
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
    () =>
      renderer?.setEntries(
        entries ?? new Uint8Array(pointCount).fill(isColouring ? OTHER_ENTRY : 0),
      ),
    [renderer, entries, pointCount, isColouring],
  );
  useLayoutEffect(
    () => renderer?.setDensities(densities ?? new Float32Array(pointCount)),
    [renderer, densities, pointCount],
  );
  const densityMax = useMemo(
    () => densities?.reduce((max, value) => Math.max(max, value), 0) ?? 0,
    [densities],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effects above upload what is drawn here
  useLayoutEffect(() => {
    if (size.width === 0 || size.height === 0) return;
    const diameter = pointDiameter(pointCount, zoomFactor);
    const rings = RINGS[theme];
    renderer?.draw({ camera, size, diameter, dims: hasMarks, rings, densityMax });
  }, [
    renderer,
    camera,
    zoomFactor,
    size,
    positions,
    entries,
    isColouring,
    flags,
    hasMarks,
    densities,
    theme,
  ]);
  return renderer !== null;
}
