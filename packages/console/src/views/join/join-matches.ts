// The matches of a join with another collection, as a flat list, and their export.

import type { JoinRow, JsonObject } from '@sagitta/client';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { csvLine } from '../../ui/csv.js';
import type { MetadataById } from '../duplicates/keep-rules.js';

/** Bounds the memory of the page to about 200 MB. */
const MATCHES_MAX = 1_000_000;

export interface JoinMatch {
  readonly id: string;
  /** From 1. */
  readonly rank: number;
  readonly matchId: string;
  readonly score: number;
}

export class JoinMatches {
  /** In the order of the join: by row, then by rank. */
  readonly matches: JoinMatch[] = [];
  #rowCount = 0;
  #unmatchedCount = 0;

  /** The number of vectors searched for so far. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /** The number of vectors without a match. */
  get unmatchedCount(): number {
    return this.#unmatchedCount;
  }

  get isFull(): boolean {
    return this.matches.length >= MATCHES_MAX;
  }

  addRow({ id, matches }: JoinRow): void {
    this.#rowCount++;
    if (matches.length === 0) this.#unmatchedCount++;
    matches.forEach((match, at) => {
      this.matches.push({ id, rank: at + 1, matchId: match.id, score: match.score });
    });
  }
}

export interface JoinedMetadata {
  /** Metadata of the vectors that are searched for. */
  readonly left: MetadataById;
  /** Metadata of their matches. */
  readonly right: MetadataById;
}

/** The lines, including their line breaks. */
export function matchesAsNdjson(
  matches: readonly JoinMatch[],
  { left, right }: JoinedMetadata,
): string[] {
  return matches.map(({ id, rank, matchId, score }) => {
    const line: JsonObject = {
      id,
      rank,
      match_id: matchId,
      score,
      metadata: left.get(id) ?? {},
      match_metadata: right.get(matchId) ?? {},
    };
    return `${stringifyExactJson(line)}\n`;
  });
}

export function matchesAsCsv(
  matches: readonly JoinMatch[],
  { left, right }: JoinedMetadata,
): string[] {
  const heading = ['id', 'rank', 'match_id', 'score', 'metadata', 'match_metadata'];
  const lines = matches.map(({ id, rank, matchId, score }) =>
    csvLine([id, rank, matchId, score, left.get(id), right.get(matchId)]),
  );
  return [csvLine(heading), ...lines];
}
