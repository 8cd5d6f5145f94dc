// The colours of points in both themes: ten categories, and a scale that people with a colour vision deficiency
// can read by its lightness. Each colour has a contrast of at least 3 with the theme's surface.

import { MISSING_ENTRY, OTHER_ENTRY, SCALE_START } from './column-colours.js';

type Rgb = readonly [red: number, green: number, blue: number];

interface ThemeColours {
  readonly categories: readonly string[];
  readonly other: string;
  readonly missing: string;
  /** From the lowest value to the highest; from light to dark or the reverse. */
  readonly scale: readonly string[];
}

const THEME_COLOURS: Record<'light' | 'dark', ThemeColours> = {
  light: {
    categories: [
      '#2f6fd6',
      '#d9541e',
      '#0a7a4b',
      '#a23ab5',
      '#9a7400',
      '#008a94',
      '#d0256f',
      '#6b4423',
      '#3b2a8f',
      '#5f8a00',
    ],
    other: '#6b7684',
    missing: '#8d8d8d',
    scale: ['#1f97a5', '#2b6fb3', '#4a3396', '#280a48'],
  },
  dark: {
    categories: [
      '#6aa5ff',
      '#ff8a5c',
      '#45c98a',
      '#d794f0',
      '#e3c14d',
      '#3fd0d6',
      '#ff86b6',
      '#c69a72',
      '#9c92ff',
      '#a9d650',
    ],
    other: '#97a3b1',
    missing: '#747f8c',
    scale: ['#5f6fd0', '#2fa0c9', '#62cf90', '#f4e76a'],
  },
};

/** RGBA of the 256 entries, for the renderer. */
export function paletteOf(theme: 'light' | 'dark'): Uint8Array {
  const palette = new Uint8Array(256 * 4);
  for (let entry = 0; entry < 256; entry++) {
    palette.set([...rgbOf(entryColour(theme, entry)), 255], entry * 4);
  }
  return palette;
}

/** The colour of an entry as CSS. */
export function entryColour(theme: 'light' | 'dark', entry: number): string {
  const { categories, other, missing, scale } = THEME_COLOURS[theme];
  if (entry === OTHER_ENTRY) return other;
  if (entry === MISSING_ENTRY) return missing;
  if (entry < SCALE_START) return categories[entry]!;
  return mix(scale, (entry - SCALE_START) / (255 - SCALE_START));
}

/** The colour at a share of the way along the stops. */
function mix(stops: readonly string[], share: number): string {
  const position = share * (stops.length - 1);
  const at = Math.min(stops.length - 2, Math.floor(position));
  const [from, to] = [rgbOf(stops[at]!), rgbOf(stops[at + 1]!)];
  const parts = from.map((value, i) => Math.round(value + (to[i]! - value) * (position - at)));
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

function rgbOf(colour: string): Rgb {
  const value = Number.parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
