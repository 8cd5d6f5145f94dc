// The issues that parsing a filter finds, each with its place in the request. Stops at ISSUES_MAX.

import {
  type FieldPath,
  field,
  ISSUES_MAX,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../common/errors.js';
import type { Json } from '../common/types.js';

/** Where the parser is. */
export interface Position {
  readonly path: FieldPath;
  /** The number of `$and`, `$or`, `$not` and `$elem_match` around it. */
  readonly depth: number;
}

export function within({ path, depth }: Position, key: string | number): Position {
  return { path: [...path, key], depth };
}

export class IssueList {
  readonly #issues: ValidationIssue[] = [];

  /** Throws `invalid_filter` if there are issues. */
  throwIssues(): void {
    if (this.#issues.length > 0) throw validationError(this.#issues, 'invalid_filter');
  }

  /** `subject` and `expected` are the beginning of a sentence, as in "a filter is" "an object". */
  reportType(position: Position, subject: string, expected: string, value: Json): void {
    this.report(position, subject, expected, describeType(value));
  }

  report(position: Position, subject: string, expected: string, actual: string | number): void {
    const detail = `${subject} ${expected}; found ${actual}`;
    this.add(position, { code: 'invalid_filter', detail, expected, actual });
  }

  reportBound(position: Position, what: string, expected: number, actual: number | string): void {
    const detail = `at most ${expected} ${what}; found ${actual}`;
    this.add(position, { code: 'limit_exceeded', detail, expected, actual });
  }

  add({ path }: Position, violation: Violation): void {
    this.#issues.push({ ...violation, location: field(...path) });
    if (this.#issues.length === ISSUES_MAX) this.throwIssues();
  }
}

export function describeType(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  if (typeof value === 'object') {
    return Object.keys(value).length === 0 ? 'an empty object' : 'an object';
  }
  if (typeof value === 'number') {
    return Number.isFinite(value) ? 'a number' : 'a number beyond float64';
  }
  return typeof value === 'bigint' ? 'a number' : `a ${typeof value}`;
}
