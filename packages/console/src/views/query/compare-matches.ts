// Compares two results: their common matches and the differences of ranks.

interface Ranked {
  readonly id: string;
  readonly score: number;
}

export interface ComparedMatch<Match extends Ranked> {
  readonly match: Match;
  /** From 1. */
  readonly rank: number;
  /** The rank in the other result; undefined if it lacks the match. */
  readonly otherRank: number | undefined;
}

export interface MatchComparison<Match extends Ranked> {
  readonly first: readonly ComparedMatch<Match>[];
  readonly second: readonly ComparedMatch<Match>[];
  readonly commonCount: number;
  /** The share of common matches in all matches, from 0 to 1; 1 for two empty results. */
  readonly overlap: number;
  /** The largest difference between the ranks of a common match. */
  readonly largestMove: number;
}

export function compareMatches<Match extends Ranked>(
  first: readonly Match[],
  second: readonly Match[],
): MatchComparison<Match> {
  const compared = withRanks(first, ranksOf(second));
  const common = compared.filter(({ otherRank }) => otherRank !== undefined);
  const union = first.length + second.length - common.length;
  return {
    first: compared,
    second: withRanks(second, ranksOf(first)),
    commonCount: common.length,
    overlap: union === 0 ? 1 : common.length / union,
    largestMove: common.reduce(
      (most, { rank, otherRank }) => Math.max(most, Math.abs(rank - otherRank!)),
      0,
    ),
  };
}

/** Describes the rank of a match relative to the other result. */
export function describeMove({ rank, otherRank }: ComparedMatch<Ranked>): string {
  if (otherRank === undefined) return 'only here';
  if (otherRank === rank) return 'same rank';
  const places = Math.abs(otherRank - rank);
  return `${places} ${otherRank > rank ? 'higher' : 'lower'} here`;
}

function withRanks<Match extends Ranked>(
  matches: readonly Match[],
  otherRanks: ReadonlyMap<string, number>,
): ComparedMatch<Match>[] {
  return matches.map((match, i) => ({
    match,
    rank: i + 1,
    otherRank: otherRanks.get(match.id),
  }));
}

function ranksOf(matches: readonly Ranked[]): ReadonlyMap<string, number> {
  return new Map(matches.map(({ id }, i) => [id, i + 1]));
}
