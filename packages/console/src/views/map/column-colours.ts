// Colours points by a metadata column: as categories with a legend, or on a scale for numbers. Each point gets
// a palette entry, which the theme turns into a colour.

import type { FoundPath } from '@sagitta/client';
import { isJsonNumber, stringifyExactJson } from '../../../../../src/common/exact-json.js';
import type { Json, JsonNumber } from '../../../../../src/common/types.js';

/** More colours could not be told apart; the other categories share one. */
const CATEGORIES_MAX = 10;
/** Fixed entries of the palette. */
export const OTHER_ENTRY = CATEGORIES_MAX;
export const MISSING_ENTRY = CATEGORIES_MAX + 1;
/** A scale uses the entries from here to 255. */
export const SCALE_START = CATEGORIES_MAX + 2;
const SCALE_ENTRIES = 256 - SCALE_START;

/** Numbers with few distinct values, such as labels, are treated as categories. */
const NUMBERS_AS_CATEGORIES_MAX = 12;
/** The share of the numbers at either end that get the end's colour, so that outliers do not stretch the scale. */
const TAIL_SHARE = 0.01;

export interface LegendEntry {
  readonly entry: number;
  readonly label: string;
  readonly count: number;
}

export type ColumnColours = {
  /** Palette entries, [pointCount]. */
  readonly entries: Uint8Array;
} & (
  | {
      readonly kind: 'categories';
      /** The categories with their own colours, then the others and the missing ones, if any. */
      readonly legend: readonly LegendEntry[];
    }
  | {
      readonly kind: 'scale';
      /** The values at the ends of the scale; values beyond get the colour of the end. */
      readonly min: number;
      readonly max: number;
      readonly missingCount: number;
    }
);

/** @param values one per point; undefined or null if the point has none. */
export function colourColumn(values: readonly (Json | undefined)[]): ColumnColours {
  const numbers = values.filter(isJsonNumber);
  const present = values.filter((value) => value !== undefined && value !== null);
  const isNumeric = numbers.length > 0 && numbers.length === present.length;
  if (isNumeric && new Set(numbers).size > NUMBERS_AS_CATEGORIES_MAX) {
    return colourScale(values, numbers);
  }
  return colourCategories(values);
}

function colourScale(
  values: readonly (Json | undefined)[],
  numbers: readonly JsonNumber[],
): ColumnColours {
  // float64 is precise enough for colours.
  const sorted = Float64Array.from(numbers, Number).sort();
  const tail = Math.floor(sorted.length * TAIL_SHARE);
  const [min, max] = [sorted[tail]!, sorted[sorted.length - 1 - tail]!];
  const entries = Uint8Array.from(values, (value) =>
    isJsonNumber(value) ? scaleEntry(Number(value), min, max) : MISSING_ENTRY,
  );
  return { kind: 'scale', entries, min, max, missingCount: values.length - numbers.length };
}

function scaleEntry(value: number, min: number, max: number): number {
  const share = max > min ? (value - min) / (max - min) : 0.5;
  return SCALE_START + Math.round(Math.min(1, Math.max(0, share)) * (SCALE_ENTRIES - 1));
}

function colourCategories(values: readonly (Json | undefined)[]): ColumnColours {
  const counts = new Map<string, number>();
  const labels = values.map(labelOf);
  for (const label of labels) {
    if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const chosen = [...counts.keys()]
    .sort((a, b) => counts.get(b)! - counts.get(a)!)
    .slice(0, CATEGORIES_MAX)
    .sort(byLabel);
  const entryOf = new Map(chosen.map((label, entry) => [label, entry]));
  const entries = Uint8Array.from(labels, (label) =>
    label === undefined ? MISSING_ENTRY : (entryOf.get(label) ?? OTHER_ENTRY),
  );
  const legend = chosen.map((label, entry) => ({ entry, label, count: counts.get(label)! }));
  const otherCount = entries.filter((entry) => entry === OTHER_ENTRY).length;
  const missingCount = entries.filter((entry) => entry === MISSING_ENTRY).length;
  const others = `${counts.size - chosen.length} others`;
  if (otherCount > 0) legend.push({ entry: OTHER_ENTRY, label: others, count: otherCount });
  if (missingCount > 0) legend.push({ entry: MISSING_ENTRY, label: 'None', count: missingCount });
  return { kind: 'categories', entries, legend };
}

function labelOf(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : stringifyExactJson(value);
}

function byLabel(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

const LABELS = /(^|[._])(label|class|category|type|kind|topic|group|cluster|lang|language)$/i;
/** Paths with more distinct values do not make good categories. */
const DISTINCT_MAX = 100;

/** The path that most likely distinguishes kinds of vectors; empty if none does. */
export function defaultColourPath(paths: readonly FoundPath[]): string {
  const candidates = paths.filter(
    ({ types, distinct_count: distinct }) =>
      types.string + types.number + types.boolean > 0 && distinct >= 2 && distinct <= DISTINCT_MAX,
  );
  candidates.sort(
    (a, b) => Number(LABELS.test(b.path)) - Number(LABELS.test(a.path)) || b.count - a.count,
  );
  return candidates[0]?.path ?? '';
}
