// The ranking that fuses several rankings; fusion-method.ts defines its scores.

import type { JsonObject } from '../../common/types.js';
import type { Collection } from '../collection/collection.js';
import {
  type ChosenRows,
  countVisible,
  uniteViews,
  viewsOfRows,
  withRows,
} from '../collection/snapshot.js';
import { hitsWithout } from '../search/hits.js';
import type { SealedRanking } from '../search/peers.js';
import { FusedSearch } from './fused-search.js';
import type { FusionMethod } from './fusion-method.js';
import type { Filter, PassingRows } from './passing-rows.js';
import { RankedPart } from './ranked-part.js';
import {
  digestOf,
  findMisplaced,
  type Locate,
  type OpenRanking,
  type Origin,
  partFilter,
  Ranking,
  type RankingKind,
  type Repeats,
} from './ranking.js';

interface FusedPart extends Filter {
  readonly ranking: Ranking;
  /** The number of best rows that this part ranks; null for all. */
  readonly limit: number | null;
  readonly weight: number;
}

class FusedRanking extends Ranking {
  readonly kind = 'fusion';
  readonly #method: FusionMethod;
  readonly #parts: readonly FusedPart[];
  readonly #origin: Origin;

  constructor(method: FusionMethod, parts: readonly FusedPart[], origin: Origin) {
    super();
    this.#method = method;
    this.#parts = parts;
    this.#origin = origin;
  }

  override get excludedIds(): readonly string[] {
    return [...new Set(this.#parts.flatMap(({ ranking }) => ranking.excludedIds))];
  }

  get repeats(): Repeats {
    return { fusion: (sent) => digestOf(sent) === this.#origin };
  }

  seal(collection: Collection): SealedFusion {
    const parts = this.#parts.map(({ ranking, filterNode: _filterNode, ...rest }) => {
      return { ...rest, ranking: ranking.seal(collection) };
    });
    return { kind: 'fusion', method: this.#method, parts, digest: digestOf(this.#origin) };
  }

  async open(rows: PassingRows): Promise<OpenRanking> {
    const parts: RankedPart[] = [];
    for (const part of this.#parts) {
      const opened = await this.#openPart(part, rows.passing(part));
      parts.push(new RankedPart(opened, part.ranking, part.weight));
    }
    const views = uniteViews(
      rows.searched.snapshot.views,
      parts.map((part) => part.views),
    );
    const search = new FusedSearch(parts, this.#method, countVisible(views));
    return {
      views: withRows(views),
      search: (query) => search.search(query),
      countBefore: () => Promise.reject(new Error('A fusion cannot be part of a fusion.')),
    };
  }

  async #openPart({ ranking, limit }: FusedPart, rows: PassingRows): Promise<OpenRanking> {
    const opened = await ranking.open(rows);
    if (limit === null) return opened;
    return { ...opened, views: await firstRows(opened, limit, []) };
  }
}

/** The first rows of a ranking, excluding the vectors of some ids. */
export async function firstRows(
  { views, search }: OpenRanking,
  limit: number,
  ids: readonly string[],
): Promise<ChosenRows> {
  if (views.length === 0) return [];
  const found = await search({ views, k: limit + ids.length, after: null, scoreMin: null });
  return viewsOfRows(hitsWithout(ids, views, { found, count: limit }));
}

interface SealedFusion {
  readonly kind: 'fusion';
  readonly method: FusionMethod;
  readonly parts: readonly {
    readonly ranking: SealedRanking;
    readonly filter: JsonObject | null;
    readonly limit: number | null;
    readonly weight: number;
  }[];
  readonly digest: string | null;
}

const PATH = ['fusion', 'parts'];

export const fusionKind: RankingKind = {
  kind: 'fusion',
  check(request, { locate, checkPart }) {
    const inPart =
      (i: number): Locate =>
      (...path) =>
        locate(...PATH, i, ...path);
    return [
      ...findMisplaced(request, ['metric', 'using'], 'fusion, whose parts have it', locate),
      ...request.fusion!.parts.flatMap((part, i) => checkPart(part, inPart(i))),
    ];
  },
  plan({ fusion }, context, path) {
    const { kind, rankConstant, normalize } = fusion!;
    const method = kind === 'rrf' ? { kind, rankConstant } : { kind, normalize };
    const parts = fusion!.parts.map((part, i): FusedPart => {
      const at = [...path, ...PATH, i];
      const { filter, limit = null, weight } = part;
      return {
        ...partFilter(filter, context, at),
        ranking: context.plan(part, at),
        limit,
        weight,
      };
    });
    return new FusedRanking(method, parts, fusion!);
  },
  unseal(sealed, context, path) {
    const { method, parts, digest } = sealed as SealedFusion;
    const unsealed = parts.map(({ ranking, filter, ...rest }, i): FusedPart => {
      const at = [...path, ...PATH, i];
      return {
        ...partFilter(filter, context, at),
        ranking: context.unseal(ranking, at),
        ...rest,
      };
    });
    return new FusedRanking(method, unsealed, digest);
  },
};
