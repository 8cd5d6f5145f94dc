// The values of a vector as a small strip of bars. It is a canvas, because many strips are painted while a table
// scrolls, and SVG paths are slow to paint.

import { useLayoutEffect, useRef } from 'react';
import { useShownTheme } from '../../ui/theme.js';
import { stripPath } from './values-shape.js';
import styles from './vectors.module.css';

interface ValuesStripProps {
  readonly values: ArrayLike<number>;
}

/** Canvas pixels per unit of the path, for sharp edges on dense screens. */
const SCALE = 3;

export function ValuesStrip({ values }: ValuesStripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shownTheme = useShownTheme();
  useLayoutEffect(() => {
    // Keeps the canvas in main memory: many small GPU textures are slow.
    const context = canvas.current!.getContext('2d', { willReadFrequently: true })!;
    context.reset();
    context.scale(SCALE, SCALE);
    context.fillStyle = colourOf(canvas.current!, shownTheme);
    context.fill(new Path2D(stripPath(values)));
  }, [values, shownTheme]);
  return (
    <canvas
      ref={canvas}
      width={64 * SCALE}
      height={16 * SCALE}
      className={styles.strip}
      role="img"
      aria-label={`${values.length} values`}
    />
  );
}

/** Colours by theme. Reading the style of each strip would force the browser to compute it. */
const colours = new Map<string, string>();

function colourOf(element: Element, theme: string): string {
  let colour = colours.get(theme);
  if (colour === undefined) {
    colour = getComputedStyle(element).color;
    colours.set(theme, colour);
  }
  return colour;
}
