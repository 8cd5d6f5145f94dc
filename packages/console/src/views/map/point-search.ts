// Finds points by their id, title or texts.

/** What can be found of a point. */
interface FoundPoint {
  readonly point: number;
  readonly title: string;
  /** A part of the text that matches; undefined if the title or the id does. */
  readonly excerpt: string | undefined;
}

export interface PointHits {
  /** All points that match, the best first, up to `HITS_MAX`. */
  readonly points: readonly number[];
  /** The first of them. */
  readonly best: readonly FoundPoint[];
  /** The number of all points that match. */
  readonly count: number;
}

export const NO_HITS: PointHits = { points: [], best: [], count: 0 };

/** More marks would cover the map. */
const HITS_MAX = 2_000;
const BEST_MAX = 8;
const EXCERPT_CHARACTERS = 60;

export interface SearchableTexts {
  readonly ids: readonly string[];
  /** By point; undefined for those without a title. */
  readonly titles: readonly (string | undefined)[];
  /** All texts of a point in lower case; undefined before they have been read. */
  readonly bodies: readonly (string | undefined)[];
}

/** The kinds of matches, from the best. */
const RANKS = { equal: 0, firstWord: 1, start: 2, word: 3, part: 4, text: 5, none: 6 } as const;

/** An exact id or title comes first, then titles that begin with the text, that have it elsewhere, then other texts. */
export function searchPoints(texts: SearchableTexts, text: string): PointHits {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return NO_HITS;
  const { ids, titles, bodies } = texts;
  const hitsByRank: number[][] = Array.from({ length: RANKS.none }, () => []);
  let count = 0;
  for (let point = 0; point < ids.length; point++) {
    const ofName = Math.min(rankOf(ids[point]!, wanted), rankOf(titles[point] ?? '', wanted));
    const hasText = ofName === RANKS.none && bodies[point]?.includes(wanted) === true;
    const rank = hasText ? RANKS.text : ofName;
    if (rank === RANKS.none) continue;
    count++;
    hitsByRank[rank]!.push(point);
  }
  const titleLength = (point: number) => titles[point]?.length ?? ids[point]!.length;
  for (const hits of hitsByRank) hits.sort((a, b) => titleLength(a) - titleLength(b) || a - b);
  const points = hitsByRank.flat().slice(0, HITS_MAX);
  const best = points.slice(0, BEST_MAX).map((point) => foundPoint(texts, point, wanted));
  return { points, best, count };
}

function rankOf(name: string, wanted: string): number {
  const lower = name.toLowerCase();
  const at = lower.indexOf(wanted);
  if (at < 0) return RANKS.none;
  if (at > 0) return isInWord(lower[at - 1]!) ? RANKS.part : RANKS.word;
  if (lower.length === wanted.length) return RANKS.equal;
  return isInWord(lower[wanted.length]!) ? RANKS.start : RANKS.firstWord;
}

function isInWord(character: string): boolean {
  return /[\p{L}\p{N}]/u.test(character);
}

function foundPoint(
  { ids, titles, bodies }: SearchableTexts,
  point: number,
  wanted: string,
): FoundPoint {
  const title = titles[point] ?? ids[point]!;
  const isInName = `${title}\n${ids[point]}`.toLowerCase().includes(wanted);
  const body = bodies[point] ?? '';
  const from = Math.max(0, body.indexOf(wanted) - EXCERPT_CHARACTERS / 3);
  const excerpt = isInName
    ? undefined
    : `${from > 0 ? '…' : ''}${body.slice(from, from + EXCERPT_CHARACTERS)}…`;
  return { point, title, excerpt };
}
