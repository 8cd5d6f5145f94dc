// Exact top-k over the parts of a snapshot: every part goes to the engine, through the batcher, and
// the answers are merged in the one order of the service, (score descending, id bytes ascending).

import type { BlockHits, BlockQuery, Position } from '../engine/engine.js';
import type { Metric, VectorBlock } from '../types.js';
import type { SnapshotPart } from './snapshot.js';

/** The batcher's side: queries over several blocks, answered in order. */
export type SubmitSearch = (
  work: readonly { readonly target: VectorBlock; readonly item: BlockQuery }[],
  options: { signal?: AbortSignal },
) => Promise<BlockHits[]>;

export interface SearchRequest {
  readonly vector: Float32Array;
  readonly metric: Metric;
  readonly k: number;
  readonly after: Position | null;
  readonly scoreMin: number | null;
}

export interface Hit {
  readonly part: SnapshotPart;
  readonly row: number;
  /** As the engine gives it: unrounded, for the order. */
  readonly score: number;
}

export interface SearchResult {
  /** Best first, at most k. */
  readonly hits: readonly Hit[];
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

export async function searchParts(
  submit: SubmitSearch,
  parts: readonly SnapshotPart[],
  request: SearchRequest,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  const searched = parts.filter((part) => part.visibleCount > 0);
  if (searched.length === 0) return { hits: [], scannedCount: 0, rescoredCount: 0 };
  const work = searched.map((part) => ({
    target: part.block,
    item: { ...request, rowCount: part.rowCount, rows: part.rows },
  }));
  const answers = await submit(work, signal === undefined ? {} : { signal });
  let scannedCount = 0;
  let rescoredCount = 0;
  for (const answer of answers) {
    scannedCount += answer.scannedCount;
    rescoredCount += answer.rescoredCount;
  }
  return { hits: mergeHits(searched, answers, request.k), scannedCount, rescoredCount };
}

/** Merges sorted answers; few parts, so the best head is looked for one by one. */
function mergeHits(
  parts: readonly SnapshotPart[],
  answers: readonly BlockHits[],
  k: number,
): Hit[] {
  const hits: Hit[] = [];
  const heads = new Uint32Array(parts.length);
  while (hits.length < k) {
    let best = -1;
    for (let i = 0; i < parts.length; i++) {
      if (heads[i]! >= answers[i]!.rows.length) continue;
      if (best < 0 || isBefore(i, best)) best = i;
    }
    if (best < 0) break;
    const head = heads[best]!++;
    const answer = answers[best]!;
    hits.push({ part: parts[best]!, row: answer.rows[head]!, score: answer.scores[head]! });
  }
  return hits;

  function isBefore(a: number, b: number): boolean {
    const scoreA = answers[a]!.scores[heads[a]!]!;
    const scoreB = answers[b]!.scores[heads[b]!]!;
    if (scoreA !== scoreB) return scoreA > scoreB;
    const idA = parts[a]!.segment.idBytes(answers[a]!.rows[heads[a]!]!);
    const idB = parts[b]!.segment.idBytes(answers[b]!.rows[heads[b]!]!);
    return Buffer.compare(idA, idB) < 0;
  }
}
