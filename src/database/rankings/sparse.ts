// The ranking by the dot product of sparse vectors.

import { field } from '../../common/errors.js';
import type { SparseVector } from '../../common/vectors.js';
import { countSparseBefore, matchSparse, rankSparse } from '../../inverted/sparse-search.js';
import type { Collection } from '../collection/collection.js';
import { openInverted } from './inverted.js';
import type { PassingRows } from './passing-rows.js';
import {
  findMisplaced,
  type OpenRanking,
  Ranking,
  type RankingKind,
  type Repeats,
} from './ranking.js';
import { columnOf, requireColumn, sameElements } from './scored.js';

class SparseRanking extends Ranking {
  readonly kind = 'sparse';
  readonly #using: string;
  readonly #vector: SparseVector;

  constructor(using: string, vector: SparseVector) {
    super();
    this.#using = using;
    this.#vector = vector;
  }

  get repeats(): Repeats {
    const { indices, values } = this.#vector;
    return {
      sparse: (sent) => sameElements(sent.indices, indices) && sameElements(sent.values, values),
      using: (sent) => sent === this.#using,
    };
  }

  seal(collection: Collection): SealedSparse {
    const { indices, values } = this.#vector;
    const column = columnOf(collection, this.#using);
    return { kind: this.kind, using: this.#using, column, indices: [...indices], values };
  }

  async open(rows: PassingRows): Promise<OpenRanking> {
    const vector = this.#vector;
    const { services, signal } = rows.searched;
    const { pool, sparseIndexes } = services;
    const having = (await rows.views()).flatMap((view) => {
      const owner = view.segment.vectorField(this.#using);
      const column = owner?.column();
      return column?.kind === 'sparse' ? { owner: owner!, column, view } : [];
    });
    const views = having.map(({ view }) => view);
    const runs = await Promise.all(
      having.map(({ owner, column, view: { segment, rowCount } }) => {
        const source = { ...column, rowCount: segment.rowCount };
        return sparseIndexes.runsOf(owner, { source, rowCount }, signal);
      }),
    );
    const searched = views.map(({ rowCount, rows: passing }, i) => {
      return { runs: runs[i]!, rowCount, passing };
    });
    const matches = await matchSparse(pool, searched, vector);
    signal?.throwIfAborted();
    return openInverted(views, runs, matches, {
      rank: (some, range) => rankSparse(pool, some, { vector, ...range }),
      countBefore: (some, rankKeys) => countSparseBefore(pool, some, vector, rankKeys),
    });
  }
}

interface SealedSparse {
  readonly kind: 'sparse';
  readonly using: string;
  readonly column: string | undefined;
  readonly indices: readonly number[];
  readonly values: Float32Array;
}

export const sparseKind: RankingKind = {
  kind: 'sparse',
  check(request, { locate }) {
    return findMisplaced(request, ['metric'], 'sparse, which the dot product ranks', locate);
  },
  plan({ sparse, using }, { view: { collection } }, path) {
    return new SparseRanking(collection.requireSparse(using, field(...path, 'using')), sparse!);
  },
  unseal(sealed, { view: { collection } }) {
    const { indices, values, ...rest } = sealed as SealedSparse;
    requireColumn(collection, rest);
    return new SparseRanking(rest.using, { indices: Uint32Array.from(indices), values });
  },
};
