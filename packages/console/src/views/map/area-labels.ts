// Labels for the dense areas of the map, on several levels: a value of the colour path if it is concentrated in the
// area, or else the terms that distinguish its points from the whole sample.

import { type DensityGrid, denseAreas, GRID_CELLS, smooth } from './density.js';
import type { PointTerms } from './point-terms.js';

export interface AreaLabel {
  readonly text: string;
  /** The palette entry of the value; undefined for terms. */
  readonly entry: number | undefined;
  /** The number of points in the area. */
  readonly count: number;
  /** The point in the densest place, at which the label stays while the layout moves. */
  readonly point: number;
  /** The zoom factor from which the label is shown. */
  readonly zoomMin: number;
}

/** The colours of points if they are categories. */
export interface PointCategories {
  /** Palette entries, [pointCount]. */
  readonly entries: Uint8Array;
  /** The names of the entries that may be labels. */
  readonly names: ReadonlyMap<number, string>;
}

interface Level {
  /** Cells over which the density is smoothed. */
  readonly radius: number;
  readonly zoomMin: number;
  /** An area with a smaller share of the points gets no label. */
  readonly shareMin: number;
}

/** Finer areas are labelled when there is room for them. */
const LEVELS: readonly Level[] = [
  { radius: 8, zoomMin: 0, shareMin: 0.006 },
  { radius: 4, zoomMin: 1.5, shareMin: 0.002 },
  { radius: 2, zoomMin: 3, shareMin: 0.0007 },
  { radius: 1, zoomMin: 6, shareMin: 0.0003 },
];
const AREA_POINTS_MIN = 8;

/** The labels of all levels, the coarsest first. */
export function areaLabels(
  grid: DensityGrid,
  terms: PointTerms,
  categories: PointCategories | undefined,
): AreaLabel[] {
  const labels: AreaLabel[] = [];
  /** The texts of coarser labels at each point; finer ones say something else. */
  const textsAt: string[][] = Array.from({ length: grid.cells.length }, () => NO_TEXTS);
  const values = [...(categories?.names.values() ?? [])];
  for (const level of LEVELS) {
    const areas = pointsByArea(grid, level);
    const named = new Set<string>();
    for (const { points, peak } of areas) {
      const anchor = pointNearestTo(points, peak, grid.cells);
      // An area with the name of a larger one of the same level would be taken for it.
      const taken = new Set([...named, ...textsAt[anchor]!]);
      const name =
        concentratedValue(points, categories, taken) ??
        // The colours already show the values.
        distinctiveTerms(points, terms, new Set([...taken, ...values]));
      if (name === undefined) continue;
      named.add(name.text);
      const { zoomMin } = level;
      labels.push({ ...name, count: points.length, point: anchor, zoomMin });
      for (const point of points) textsAt[point] = [...textsAt[point]!, name.text];
    }
  }
  return labels;
}

const NO_TEXTS: string[] = [];

interface Area {
  readonly points: readonly number[];
  /** A cell. */
  readonly peak: number;
}

/** The areas of a level with enough points, the largest first. */
function pointsByArea({ cells, counts }: DensityGrid, { radius, shareMin }: Level): Area[] {
  const { areaOf, peaks } = denseAreas(smooth(counts, radius));
  const pointsOf: number[][] = peaks.map(() => []);
  for (let point = 0; point < cells.length; point++) {
    const area = cells[point]! < 0 ? -1 : areaOf[cells[point]!]!;
    if (area >= 0) pointsOf[area]!.push(point);
  }
  const least = Math.max(AREA_POINTS_MIN, shareMin * cells.length);
  return peaks
    .map((peak, area) => ({ peak, points: pointsOf[area]! }))
    .filter(({ points }) => points.length >= least)
    .sort((a, b) => b.points.length - a.points.length);
}

/** The point whose cell is nearest to the peak. */
function pointNearestTo(points: readonly number[], peak: number, cells: Int32Array): number {
  let [best, bestDistance] = [points[0]!, Number.POSITIVE_INFINITY];
  for (const point of points) {
    const cell = cells[point]!;
    const rows = Math.floor(cell / GRID_CELLS) - Math.floor(peak / GRID_CELLS);
    const columns = (cell % GRID_CELLS) - (peak % GRID_CELLS);
    const distance = rows * rows + columns * columns;
    if (distance >= bestDistance) continue;
    [best, bestDistance] = [point, distance];
  }
  return best;
}

type AreaName = Pick<AreaLabel, 'text' | 'entry'>;

/** A value is concentrated if so many points of an area have it, and it is so much more frequent than elsewhere. */
const VALUE_SHARE_MIN = 0.25;
const VALUE_LIFT_MIN = 3;
/** Or, for a value that is frequent everywhere, if so few of the usual others are left. */
const OTHERS_SHARE_MAX = 0.5;

/** The value that distinguishes an area best if it is concentrated there. */
function concentratedValue(
  points: readonly number[],
  categories: PointCategories | undefined,
  taken: ReadonlySet<string>,
): AreaName | undefined {
  if (categories === undefined) return undefined;
  const { entries, names } = categories;
  const counts = new Uint32Array(256);
  for (const point of points) counts[entries[point]!]!++;
  const totals = totalsOf(entries);
  let [best, bestGain] = [undefined as AreaName | undefined, 0];
  for (const [entry, text] of names) {
    const share = counts[entry]! / points.length;
    const usual = totals[entry]! / entries.length;
    const isRare = share >= VALUE_SHARE_MIN && share >= VALUE_LIFT_MIN * usual;
    const isPure = share > usual && 1 - share <= OTHERS_SHARE_MAX * (1 - usual);
    const gain = share * Math.log(share / usual);
    if ((isRare || isPure) && gain > bestGain) [best, bestGain] = [{ text, entry }, gain];
  }
  return best === undefined || taken.has(best.text) ? undefined : best;
}

const totalsByEntries = new WeakMap<Uint8Array, Uint32Array>();

/** The number of points with each entry. */
function totalsOf(entries: Uint8Array): Uint32Array {
  const known = totalsByEntries.get(entries);
  if (known !== undefined) return known;
  const totals = new Uint32Array(256);
  for (const entry of entries) totals[entry]!++;
  totalsByEntries.set(entries, totals);
  return totals;
}

/** The share of an area's points that must have a term. */
const TERM_SHARE_MIN = 0.12;
/** How many times more frequent it must be than in the whole sample. */
const TERM_LIFT_MIN = 2.5;
/** A second term is named if it distinguishes the area nearly as well. */
const SECOND_TERM_SHARE = 0.5;
/** Terms that begin with the same letters are forms of one word. */
const STEM_CHARACTERS = 5;

/** The one or two terms that distinguish the points best from the whole sample. */
function distinctiveTerms(
  points: readonly number[],
  terms: PointTerms,
  taken: ReadonlySet<string>,
): AreaName | undefined {
  const counts = new Map<number, number>();
  for (const point of points) {
    for (const term of terms.of(point)) counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  const ranked = [...counts]
    .map(([term, count]) => ({ text: terms.names[term]!, ...rate(term, count, points, terms) }))
    .filter(({ share, lift }) => share >= TERM_SHARE_MIN && lift >= TERM_LIFT_MIN)
    .filter(({ text }) => ![...taken].some((other) => other.split(SEPARATOR).includes(text)))
    .sort((a, b) => b.gain - a.gain);
  const [first] = ranked;
  if (first === undefined) return undefined;
  const second = ranked
    .slice(1)
    .find(({ text, gain }) => gain >= SECOND_TERM_SHARE * first.gain && !isForm(text, first.text));
  const text = second === undefined ? first.text : `${first.text}${SEPARATOR}${second.text}`;
  return taken.has(text) ? undefined : { text, entry: undefined };
}

const SEPARATOR = ' · ';

/** How much a term tells about membership in the area: its part of the relative entropy to the whole sample. */
function rate(term: number, count: number, points: readonly number[], terms: PointTerms) {
  const share = count / points.length;
  const lift = share / (terms.countOf(term) / terms.pointCount);
  return { share, lift, gain: share * Math.log(lift) };
}

function isForm(a: string, b: string): boolean {
  const [one, other] = [a.toLowerCase(), b.toLowerCase()];
  const stem = one.slice(0, STEM_CHARACTERS);
  return other.includes(one) || one.includes(other) || other.startsWith(stem);
}
