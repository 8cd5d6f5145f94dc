// The values of a vector as a small strip of bars around zero. A canvas, since many strips are painted
// while a table scrolls, and paths of SVG are slow to paint.

import { useLayoutEffect, useRef } from 'react';
import { useShownTheme } from '../../ui/theme.js';
import { stripPath } from './values-shape.js';
import styles from './vectors.module.css';

interface ValuesStripProps {
  readonly values: ArrayLike<number>;
}

/** Pixels of the canvas for each unit of the path, for sharp edges on dense screens. */
const SCALE = 3;

export function ValuesStrip({ values }: ValuesStripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shownTheme = useShownTheme();
  useLayoutEffect(() => {
    // Kept in memory: as textures of a graphics processor, many small canvases are slow.
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

/** By theme; asking for the style of each strip would make the browser compute it at once. */
const colours = new Map<string, string>();

function colourOf(element: Element, theme: string): string {
  let colour = colours.get(theme);
  if (colour === undefined) {
    colour = getComputedStyle(element).color;
    colours.set(theme, colour);
  }
  return colour;
}
