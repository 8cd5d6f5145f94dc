// A ranking in two stages: ranks only the best rows of another ranking.

import type { FieldPath } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';
import type { Engine } from '../../engine/core/engine.js';
import type { PrefetchRequest } from '../api/query-api.js';
import type { Collection } from '../collection/collection.js';
import type { SealedRanking } from '../search/peers.js';
import { firstRows } from './fusion.js';
import type { Filter, PassingRows } from './passing-rows.js';
import {
  digestOf,
  type OpenRanking,
  type Origin,
  partFilter,
  Ranking,
  type RankingContext,
  type Repeats,
  type Scoring,
} from './ranking.js';

interface FirstStage extends Filter {
  readonly ranking: Ranking;
  readonly limit: number;
  readonly origin: Origin;
}

class PrefetchedRanking extends Ranking {
  readonly kind = 'prefetch';
  readonly #first: FirstStage;
  readonly #ranking: Ranking;

  constructor(first: FirstStage, ranking: Ranking) {
    super();
    this.#first = first;
    this.#ranking = ranking;
  }

  override get excludedIds(): readonly string[] {
    return this.#ranking.excludedIds;
  }

  override get scoring(): Scoring | null {
    return this.#ranking.scoring;
  }

  override get hasDistance(): boolean {
    return this.#ranking.hasDistance;
  }

  get repeats(): Repeats {
    const { origin } = this.#first;
    return { ...this.#ranking.repeats, prefetch: (sent) => digestOf(sent) === origin };
  }

  override searcher(engine: Pick<Engine, 'name'>): string {
    return this.#ranking.searcher(engine);
  }

  override shownScore(score: number): number {
    return this.#ranking.shownScore(score);
  }

  seal(collection: Collection): SealedPrefetch {
    const { ranking, filter, limit, origin } = this.#first;
    const first = { ranking: ranking.seal(collection), filter, limit, digest: digestOf(origin) };
    return { kind: 'prefetch', first, ranking: this.#ranking.seal(collection) };
  }

  async open(rows: PassingRows): Promise<OpenRanking> {
    const { ranking, limit } = this.#first;
    const opened = await ranking.open(rows.passing(this.#first));
    // Vectors that the first stage names by id are excluded from the second stage as well.
    const first = await firstRows(opened, limit, ranking.excludedIds);
    return this.#ranking.open(rows.among(first));
  }
}

interface SealedPrefetch {
  readonly kind: 'prefetch';
  readonly first: {
    readonly ranking: SealedRanking;
    readonly filter: JsonObject | null;
    readonly limit: number;
    readonly digest: string | null;
  };
  readonly ranking: SealedRanking;
}

const PATH = ['prefetch'];

/** Restricts a ranking to the best rows of a prefetch. Throws what `RankingKind.plan` throws. */
export function planPrefetch(
  ranking: Ranking,
  request: PrefetchRequest,
  context: RankingContext,
): Ranking {
  const { filter, limit } = request;
  const first = {
    ranking: context.plan(request, PATH),
    ...partFilter(filter, context, PATH),
    limit,
    origin: request,
  };
  return new PrefetchedRanking(first, ranking);
}

/** Throws what `RankingKind.unseal` throws. */
export function unsealPrefetch(
  sealed: SealedRanking,
  context: RankingContext,
  path: FieldPath,
): Ranking {
  const { first, ranking } = sealed as SealedPrefetch;
  const { filter, limit, digest: origin } = first;
  const stage = {
    ranking: context.unseal(first.ranking, PATH),
    ...partFilter(filter, context, PATH),
    limit,
    origin,
  };
  return new PrefetchedRanking(stage, context.unseal(ranking, path));
}
