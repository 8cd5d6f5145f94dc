// Rankings by examples. The vectors of the examples become either one query vector or the input of a formula over the
// scores with each of them.

import {
  type FieldPath,
  field,
  type IssueLocation,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import type { Metric } from '../../common/types.js';
import { sumOfSquares } from '../../engine/core/canonical.js';
import { type Formula, searchByExamples } from '../../engine/core/example-search.js';
import type { DiscoverRequest, Example, QueryRequest, RecommendRequest } from '../api/query-api.js';
import type { SearchedVector } from '../collection/collection.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { SealedVectors } from '../search/peers.js';
import type { ReadServices } from '../search/read-services.js';
import type { LocalSearch } from '../search/scattered-search.js';
import type { CheckContext, RankingKind, Scoring } from './ranking.js';
import { concatenate, type ScoredBy, ScoredRanking } from './scored.js';
import { storedVector, unsealVectors, VectorRanking } from './vector.js';

/** Ranks by a formula over the scores with several vectors. */
class ExampleRanking extends ScoredRanking {
  readonly kind = 'examples';
  readonly #formula: Formula;

  constructor(by: ScoredBy, formula: Formula) {
    super(by);
    this.#formula = formula;
  }

  override get scoring(): Scoring {
    const { vector, metric } = this.by;
    return { vector, metric, formula: this.#formula };
  }

  protected localSearch({ pool }: ReadServices, signal?: AbortSignal): LocalSearch {
    const formula = this.#formula;
    return (queries) =>
      Promise.all(
        queries.map((query) =>
          searchByExamples(pool, { ...query, formula }, signal ? { signal } : {}),
        ),
      );
  }
}

export const exampleKind: RankingKind = {
  kind: 'examples',
  check: findExampleIssues,
  plan(request, { view }, path) {
    const { recommend, discover } = request;
    const searched = view.collection.searchedVector(request, path);
    const { metric, using } = searched;
    const { formula, ...examples } =
      recommend === undefined
        ? planDiscover(view, discover!, searched, path)
        : planRecommend(view, recommend, searched, path);
    const by = { ...examples, using, metric, origin: recommend ?? discover! };
    return formula === null ? new VectorRanking(by) : new ExampleRanking(by, formula);
  },
  unseal(sealed, { view }) {
    const { formula, ...by } = sealed as SealedVectors;
    return new ExampleRanking(unsealVectors(by, view), formula!);
  },
};

interface PlannedExamples {
  /** The query vector, or with a formula the vectors of all examples, row-major. */
  readonly vector: Float32Array;
  readonly formula: Formula | null;
  /** The ids of examples to exclude from the result. */
  readonly excludedIds: readonly string[];
}

export type ExamplesRequest = Pick<QueryRequest, 'recommend' | 'discover'>;

function findExampleIssues(
  { recommend, discover }: ExamplesRequest,
  { limits: { examplesMax }, locate }: CheckContext,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const check = (name: string, count: number, missing: string | null) => {
    const location = locate(name);
    if (missing !== null) issues.push({ location, code: 'invalid_request', detail: missing });
    if (count <= examplesMax) return;
    const detail = `Expected at most ${examplesMax} examples; found ${count}.`;
    const bound = { expected: examplesMax, actual: count };
    issues.push({ location, code: 'limit_exceeded', detail, ...bound });
  };
  if (recommend !== undefined) {
    check('recommend', countExamples({ recommend }), missingOfRecommend(recommend));
  }
  if (discover !== undefined) {
    const count = countExamples({ discover });
    check('discover', count, count === 0 ? 'Expected target or context; found neither.' : null);
  }
  return issues;
}

function missingOfRecommend({ positive, negative, strategy }: RecommendRequest): string | null {
  if (positive.length > 0) return null;
  if (negative.length === 0) return 'Expected positive or negative examples; found neither.';
  if (strategy !== 'average_vector') return null;
  return 'Expected a positive example for the strategy average_vector; found none.';
}

export function countExamples({ recommend, discover }: ExamplesRequest): number {
  const { positive = [], negative = [] } = recommend ?? {};
  const { target, context = [] } = discover ?? {};
  return positive.length + negative.length + 2 * context.length + (target === undefined ? 0 : 1);
}

/** Whether scores come from a formula, so that they are not distances. */
export function isScoredByFormula({ recommend, discover }: ExamplesRequest): boolean {
  return discover !== undefined || (recommend?.strategy ?? 'average_vector') !== 'average_vector';
}

function planRecommend(
  view: SnapshotView,
  request: RecommendRequest,
  searched: SearchedVector,
  path: FieldPath,
): PlannedExamples {
  const { positive, negative, strategy } = request;
  const read = createReader(view, searched, [...path, 'recommend']);
  const positives = positive.map((example, i) => read(example, 'positive', i));
  const negatives = negative.map((example, i) => read(example, 'negative', i));
  const excludedIds = idsOf([...positive, ...negative], request);
  if (strategy === 'average_vector') {
    const location = field(...path, 'recommend');
    const vector = averageVector(positives, negatives, searched.metric, location);
    view.collection.checkQueryVector(vector, searched, location);
    return { vector, formula: null, excludedIds };
  }
  const formula = { kind: strategy, positiveCount: positives.length };
  return { vector: concatenate([...positives, ...negatives]), formula, excludedIds };
}

function planDiscover(
  view: SnapshotView,
  request: DiscoverRequest,
  searched: SearchedVector,
  path: FieldPath,
): PlannedExamples {
  const { target, context } = request;
  const read = createReader(view, searched, [...path, 'discover']);
  const vectors = [
    ...context.map(({ positive }, i) => read(positive, 'context', i, 'positive')),
    ...context.map(({ negative }, i) => read(negative, 'context', i, 'negative')),
    ...(target === undefined ? [] : [read(target, 'target')]),
  ];
  const examples = context.flatMap(({ positive, negative }) => [positive, negative]);
  const kind = target === undefined ? 'context' : 'discover';
  return {
    vector: concatenate(vectors),
    formula: { kind, positiveCount: context.length },
    excludedIds: idsOf(target === undefined ? examples : [...examples, target], request),
  };
}

/** Returns a function that reads the vector of an example at a path below `base`. */
function createReader(view: SnapshotView, searched: SearchedVector, base: FieldPath) {
  return (example: Example, ...path: FieldPath): Float32Array => {
    const at = [...base, ...path];
    const vector =
      typeof example === 'string' ? storedVector(view, example, searched.using, at) : example;
    view.collection.checkQueryVector(vector, searched, field(...at));
    return vector;
  };
}

function idsOf(
  examples: readonly Example[],
  { includeExamples }: { readonly includeExamples: boolean },
): readonly string[] {
  if (includeExamples) return [];
  return [...new Set(examples.filter((example) => typeof example === 'string'))];
}

/**
 * The mean p of the positive examples, or 2p − n with the mean n of the negative examples. With cosine, examples are
 * scaled to length 1 first. A single positive example is returned unchanged. Computed in float64 in the order of the
 * examples and rounded once. Throws `invalid_vector` if the result is beyond the range of float32.
 */
function averageVector(
  positives: readonly Float32Array[],
  negatives: readonly Float32Array[],
  metric: Metric,
  location: IssueLocation,
): Float32Array {
  // Scaling it to length 1 would make its scores differ in the last digits from those of a query by this vector.
  if (positives.length === 1 && negatives.length === 0) return positives[0]!;
  const positive = meanOf(positives, metric);
  const negative = negatives.length === 0 ? positive : meanOf(negatives, metric);
  const vector = Float32Array.from(positive, (value, i) => value + (value - negative[i]!));
  if (vector.every(Number.isFinite)) return vector;
  const detail = 'The average vector of the examples is beyond the range of float32.';
  throw validationError([{ location, code: 'invalid_vector', detail }]);
}

function meanOf(vectors: readonly Float32Array[], metric: Metric): Float64Array {
  const mean = new Float64Array(vectors[0]!.length);
  for (const vector of vectors) {
    const length = metric === 'cosine' ? Math.sqrt(sumOfSquares(vector, 0, vector.length)) : 1;
    for (let i = 0; i < mean.length; i++) mean[i]! += vector[i]! / length;
  }
  return mean.map((sum) => sum / vectors.length);
}
