// The kinds of rankings, by the request members that choose them.

import type { ValidationIssue } from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import { UNNAMED } from '../../common/vectors.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { QueryRequest, TargetRequest } from '../api/query-api.js';
import { requestName } from '../api/repeated.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import { exampleKind } from './examples.js';
import { fusionKind } from './fusion.js';
import { multiKind } from './multi.js';
import { planPrefetch, unsealPrefetch } from './prefetch.js';
import type { Locate, Ranking, RankingContext, RankingKind } from './ranking.js';
import { sparseKind } from './sparse.js';
import { textKind } from './text.js';
import { vectorKind } from './vector.js';

/** The members that choose a ranking, in the order in which messages list them. */
const KIND_OF_MEMBER = {
  vector: vectorKind,
  id: vectorKind,
  multiVector: multiKind,
  embed: vectorKind,
  text: textKind,
  sparse: sparseKind,
  recommend: exampleKind,
  discover: exampleKind,
  fusion: fusionKind,
} satisfies Partial<Record<keyof TargetRequest, RankingKind>>;

type Member = keyof typeof KIND_OF_MEMBER;

const MEMBERS = Object.keys(KIND_OF_MEMBER) as readonly Member[];
/** The members that a part of a fusion may have. */
const PART_MEMBERS = MEMBERS.filter((name) => name !== 'fusion');

/**
 * All members that describe rankings. A request with a cursor may repeat none, unless
 * the ranking has a test for it.
 */
export const RANKING_MEMBERS = Object.fromEntries(
  [...MEMBERS, 'prefetch', 'using', 'metric'].map((member) => [member, () => false]),
);

/** Whether the request chooses a ranking. */
export function hasRanking(request: TargetRequest): boolean {
  return MEMBERS.some((name) => request[name] !== undefined);
}

/** The issues of a ranking that can be found without its collection. */
export function findRankingIssues(
  request: TargetRequest,
  limits: Limits,
  locate: Locate,
  members = MEMBERS,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const sent = members.filter((name) => request[name] !== undefined);
  if (sent.length !== 1) {
    const names = sent.map(requestName);
    const found = names.length === 0 ? 'none' : names.join(' and ');
    const detail = `Expected one of ${members.map(requestName).join(', ')}; found ${found}.`;
    const location = locate(names[1] ?? 'vector');
    issues.push({ location, code: 'invalid_request', detail });
  }
  const checkPart = (part: TargetRequest, locatePart: Locate) =>
    findRankingIssues(part, limits, locatePart, PART_MEMBERS);
  for (const kind of new Set(sent.map((name): RankingKind => KIND_OF_MEMBER[name]))) {
    issues.push(...kind.check(request, { limits, locate, checkPart }));
  }
  return issues;
}

/** Creates the context of the rankings of one request. */
export function rankingContext(view: SnapshotView, limits: Limits): RankingContext {
  const nodes = new Map<string, FilterNode>();
  const context: RankingContext = {
    view,
    limits,
    parseFilter(filter, path) {
      const text = stringifyExactJson(filter);
      let node = nodes.get(text);
      if (node === undefined) {
        node = view.collection.parseFilter(filter, limits, path);
        nodes.set(text, node);
      }
      return node;
    },
    plan: (request, path) => kindOf(request, view).plan(request, context, path),
    unseal(sealed, path) {
      if (sealed.kind === 'prefetch') return unsealPrefetch(sealed, context, path);
      return UNSEALED.get(sealed.kind)!.unseal(sealed, context, path);
    },
  };
  return context;
}

const UNSEALED = new Map<string, RankingKind>(
  Object.values(KIND_OF_MEMBER).map((kind) => [kind.kind, kind]),
);

function kindOf(request: TargetRequest, { collection }: SnapshotView): RankingKind {
  const member = MEMBERS.find((name) => request[name] !== undefined)!;
  // An id stands for the vector of this name in its row, which may be a multi-vector.
  const isMulti =
    member === 'id' && collection.multiShapeOf(request.using ?? UNNAMED) !== undefined;
  return isMulti ? multiKind : KIND_OF_MEMBER[member];
}

/** Throws what `RankingKind.plan` throws. */
export function planRanking(request: QueryRequest, context: RankingContext): Ranking {
  if (request.prefetch === undefined) return context.plan(request, []);
  const { prefetch, ...target } = request;
  return planPrefetch(context.plan(target, []), prefetch, context);
}
