// Searches some of the rows of a snapshot for another node of the cluster (scattered-search.ts).

import { SagittaError } from '../../common/errors.js';
import type { SearchHits } from '../../engine/core/engine.js';
import type { Collection } from '../collection/collection.js';
import type { SegmentView } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import {
  NO_PEERS,
  type PeerCountRequest,
  type PeerHits,
  type PeerQuery,
  type PeerSearchRequest,
} from '../search/peers.js';
import type { ReadServices } from '../search/read-services.js';
import { narrow, searchRanges } from '../search/scattered-search.js';
import { rankingContext } from './kinds.js';
import { openRankings, searchRankings } from './open-rankings.js';
import type { OpenRanking } from './ranking.js';
import { hasColumn } from './scored.js';

type RankedRows = Pick<PeerQuery, 'ranking' | 'filters'>;

/**
 * Rejects with `cursor_expired` if the snapshot can no longer be read, with `overloaded`, and with the signal's reason
 * if the snapshot does not arrive in time.
 */
export async function searchForPeer(
  collection: Collection,
  { queries, sequence, ranges }: PeerSearchRequest,
  services: ReadServices,
  signal: AbortSignal,
): Promise<readonly PeerHits[]> {
  const alone = { ...services, peers: NO_PEERS };
  return await inSnapshot(collection, sequence, queries, alone, signal, async (opened) => {
    const searches = queries.map(({ k, after, scoreMin }, q) => {
      const ranking = opened[q]!;
      return { ranking, k, after, scoreMin, views: ranking.views };
    });
    const hits = await searchRanges(searches, ranges, async (some) => {
      const asked = some.map(({ ranking, ...query }) => ({ ranking, query }));
      return (await searchRankings(asked, alone, signal)).hits;
    });
    return hits.map((found, q) => toPeerHits(found, opened[q]!.views));
  });
}

/** Counts the rows before rank keys; rejects like `searchForPeer`. */
export async function countForPeer(
  collection: Collection,
  { query, rankKeys, sequence, ranges }: PeerCountRequest,
  services: ReadServices,
  signal: AbortSignal,
): Promise<Float64Array> {
  const alone = { ...services, peers: NO_PEERS };
  return await inSnapshot(collection, sequence, [query], alone, signal, async ([opened]) =>
    opened!.countBefore(narrow(opened!.views, ranges).views, rankKeys),
  );
}

function toPeerHits(
  { viewIndexes, rows, ...rest }: SearchHits,
  views: readonly SegmentView[],
): PeerHits {
  const segments = Array.from(viewIndexes, (index) => views[index]!.segment);
  return {
    ...rest,
    ids: segments.map((segment, i) => segment.id(rows[i]!)),
    sequences: segments.map((segment, i) => segment.insertedSequence(rows[i]!)),
  };
}

/** Opens rankings in the snapshot that another node asked for, and keeps it readable during `use`. */
async function inSnapshot<Result>(
  collection: Collection,
  sequence: number,
  ranked: readonly RankedRows[],
  services: ReadServices,
  signal: AbortSignal,
  use: (opened: readonly OpenRanking[]) => Promise<Result>,
): Promise<Result> {
  await collection.waitForSequence(sequence, signal);
  if (sequence < collection.horizonSequence) {
    throw new SagittaError(
      'cursor_expired',
      `The snapshot at sequence ${sequence} of "${collection.definition.id}" can no longer be read; the oldest is at ${collection.horizonSequence}.`,
    );
  }
  const view = new SnapshotView(collection, services.collections);
  try {
    view.pin(sequence);
    const context = rankingContext(view, services.limits);
    const rankings = ranked.map(({ ranking, filters }) => {
      if (!hasColumn(collection, ranking)) throw unknownColumn(collection, ranking.using);
      const parsed = filters.map((filter) => ({
        filter,
        filterNode: context.parseFilter(filter, []),
      }));
      return { sequence, ranking: context.unseal(ranking, []), filters: parsed };
    });
    return await use(await openRankings(view, rankings, services, signal));
  } finally {
    view.close();
  }
}

/** The error for the node that asked, which then searches the range itself. */
function unknownColumn({ definition: { id } }: Collection, using: string): SagittaError {
  const detail = `This node does not know the vector "${using}" of collection "${id}" yet. Retry after 1 s.`;
  return new SagittaError('starting', detail, { retryAfterSeconds: 1 });
}
