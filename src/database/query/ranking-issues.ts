// The issues of what a query, a part of a fusion or a prefetch ranks by, as far as they show without a
// collection.

import type { FieldPath, IssueLocation, ValidationIssue, Violation } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { findExampleIssues } from './examples.js';
import type { TargetRequest } from './query-api.js';

export type Locate = (...path: FieldPath) => IssueLocation;

/** The members that say what to rank by. */
const TARGETS = [
  'vector',
  'id',
  'multiVector',
  'embed',
  'text',
  'sparse',
  'recommend',
  'discover',
  'fusion',
] as const;
/** Those that a part of a fusion may have. */
const PART_TARGETS = TARGETS.filter((name) => name !== 'fusion');

/** Whether the request says what to rank by. */
export function hasRanking(request: TargetRequest): boolean {
  return TARGETS.some((name) => request[name] !== undefined);
}

/** The issues of a ranking that show without its collection. */
export function findRankingIssues(
  request: TargetRequest,
  limits: Limits,
  locate: Locate,
): ValidationIssue[] {
  const { fusion } = request;
  const issues = findTargetIssues(request, TARGETS, limits, locate);
  if (fusion === undefined) return issues;
  const inPart =
    (i: number): Locate =>
    (...path) =>
      locate('fusion', 'parts', i, ...path);
  return issues.concat(
    findMisplaced(request, ['metric', 'using'], 'fusion, whose parts have it', locate),
    fusion.parts.flatMap((part, i) => findTargetIssues(part, PART_TARGETS, limits, inPart(i))),
  );
}

function findTargetIssues(
  request: TargetRequest,
  names: readonly (keyof TargetRequest)[],
  limits: Limits,
  locate: Locate,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const targets = names.filter((name) => request[name] !== undefined).map(wireName);
  const [first, second] = targets;
  if (targets.length !== 1) {
    const found = targets.length === 0 ? 'none' : targets.join(' and ');
    const detail = `Expected one of ${names.map(wireName).join(', ')}; found ${found}.`;
    const location = locate(second ?? 'vector');
    issues.push({ location, code: 'invalid_request', detail });
  }
  if (first === 'embed' && request.using !== undefined) {
    const detail = 'Expected embed without using: texts become unnamed vectors.';
    issues.push({ location: locate('using'), code: 'invalid_request', detail });
  }
  if (request.text !== undefined) {
    issues.push(...findMisplaced(request, ['metric', 'using'], 'text, which BM25 ranks', locate));
  }
  if (request.sparse !== undefined) {
    const other = 'sparse, which the dot product ranks';
    issues.push(...findMisplaced(request, ['metric'], other, locate));
  }
  const { multiVector = [] } = request;
  if (multiVector.length > limits.queryVectorsMax) {
    issues.push({
      location: locate('multi_vector'),
      ...tooManyVectors(multiVector.length, limits),
    });
  }
  return issues.concat(findExampleIssues(request, limits, locate));
}

/** As requests spell it. */
function wireName(name: string): string {
  return name === 'multiVector' ? 'multi_vector' : name;
}

export function tooManyVectors(actual: number, { queryVectorsMax: expected }: Limits): Violation {
  const detail = `Expected at most ${expected} vectors to search with; found ${actual}.`;
  return { code: 'limit_exceeded', detail, expected, actual };
}

/** Members that compare vectors do not go with a ranking by something else. */
export function findMisplaced<Name extends string>(
  request: Partial<Record<Name, unknown>>,
  names: readonly Name[],
  other: string,
  locate: Locate,
): ValidationIssue[] {
  return names.flatMap((name) => {
    if (request[name] === undefined) return [];
    const detail = `${name} is for queries by vectors; found it with ${other}.`;
    return [{ location: locate(name), code: 'invalid_request', detail }];
  });
}
