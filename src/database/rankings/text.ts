// The ranking of texts by BM25. Statistics cover all visible rows, so that a filter does not change scores.

import { type FieldPath, field, validationError } from '../../common/errors.js';
import type { TextSettings } from '../../common/text-settings.js';
import { termWeight } from '../../inverted/bm25.js';
import type { TextStatistics, TextTerms } from '../../inverted/text-match.js';
import type { TextScoring } from '../../inverted/text-rank.js';
import { countTextBefore, matchText, rankText, termsOf } from '../../inverted/text-search.js';
import type { TextRequest } from '../api/query-api.js';
import { sameJson } from '../api/repeated.js';
import { openInverted } from './inverted.js';
import type { PassingRows } from './passing-rows.js';
import {
  findMisplaced,
  type OpenRanking,
  Ranking,
  type RankingContext,
  type RankingKind,
  type Repeats,
} from './ranking.js';

/** A text query with its analysed words. */
interface TextQuery {
  readonly request: TextRequest;
  readonly terms: TextTerms;
  readonly settings: TextSettings;
}

class TextRanking extends Ranking {
  readonly kind = 'text';
  readonly #text: TextQuery;

  constructor(text: TextQuery) {
    super();
    this.#text = text;
  }

  get repeats(): Repeats {
    return { text: (sent) => sameJson(sent, this.#text.request) };
  }

  seal(): SealedText {
    return { kind: this.kind, request: this.#text.request };
  }

  async open(rows: PassingRows): Promise<OpenRanking> {
    const { terms, settings } = this.#text;
    const { snapshot, signal, services } = rows.searched;
    const { pool, textIndexes } = services;
    const passing = await rows.views();
    const runs = await Promise.all(
      snapshot.views.map((view) => textIndexes.runsOf(view, settings, signal)),
    );
    const searched = snapshot.views.map(({ rowCount, rows: visible }, i) => {
      return { runs: runs[i]!, rowCount, visible, passing: passing[i]!.rows };
    });
    const matches = await matchText(pool, searched, terms);
    signal?.throwIfAborted();
    const scoring = scoringOf(terms, settings, matches.statistics);
    return openInverted(passing, runs, matches.views, {
      rank: (views, range) => rankText(pool, views, { ...scoring, ...range }),
      countBefore: (views, rankKeys) => countTextBefore(pool, views, scoring, rankKeys),
    });
  }
}

interface SealedText {
  readonly kind: 'text';
  readonly request: TextRequest;
}

export const textKind: RankingKind = {
  kind: 'text',
  check(request, { locate }) {
    return findMisplaced(request, ['metric', 'using'], 'text, which BM25 ranks', locate);
  },
  plan: ({ text }, context, path) => planText(text!, context, path),
  unseal: (sealed, context, path) => planText((sealed as SealedText).request, context, path),
};

/** Throws `invalid_request` for a collection without a text index, and `limit_exceeded` for too many words. */
function planText(
  request: TextRequest,
  { view: { collection }, limits: { textTermsMax } }: RankingContext,
  path: FieldPath,
): TextRanking {
  const { text: settings, id } = collection.definition;
  const location = field(...path, 'text');
  if (settings === undefined) {
    const detail = `Collection "${id}" has no text index. Name the fields to search in "text" when a collection is created.`;
    throw validationError([{ location, code: 'invalid_request', detail }]);
  }
  const terms = termsOf(request.query, request.match === 'all', settings);
  const actual = terms.terms.length;
  if (actual > textTermsMax) {
    const detail = `Expected at most ${textTermsMax} different words; found ${actual}.`;
    const bound = { expected: textTermsMax, actual };
    throw validationError([{ location, code: 'limit_exceeded', detail, ...bound }]);
  }
  return new TextRanking({ request, terms, settings });
}

function scoringOf(
  { terms, counts }: TextTerms,
  { k1, b }: TextSettings,
  { documentCount, totalLength, containingCounts }: TextStatistics,
): TextScoring {
  const weights = counts.map((count, i) => {
    const containingCount = containingCounts[i]!;
    return termWeight({ documentCount, containingCount }, count, { k1, b });
  });
  return { terms, weights, averageLength: totalLength / documentCount, k1, b };
}
