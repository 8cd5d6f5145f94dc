// The issues that parsing a filter finds, each with its location in the request. Parsing stops at ISSUES_MAX.

import {
  type FieldPath,
  field,
  ISSUES_MAX,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../common/errors.js';
import type { Json } from '../common/types.js';

/** A place in the JSON of the filter. */
export interface Location {
  readonly path: FieldPath;
  /** The number of `$and`, `$or`, `$not` and `$elem_match` around it. */
  readonly depth: number;
}

export function within({ path, depth }: Location, key: string | number): Location {
  return { path: [...path, key], depth };
}

export class IssueList {
  readonly #issues: ValidationIssue[] = [];

  /** Throws `invalid_filter` if there are issues. */
  throwIssues(): void {
    if (this.#issues.length > 0) throw validationError(this.#issues, 'invalid_filter');
  }

  /** Reports a value of a wrong type. `expected` is a noun phrase, such as "an object". */
  reportType(location: Location, expected: string, value: Json): void {
    this.report(location, expected, describeJson(value));
  }

  report(location: Location, expected: string, actual: string | number): void {
    const detail = `Expected ${expected}; found ${actual}.`;
    this.add(location, { code: 'invalid_filter', detail, expected, actual });
  }

  reportBound(location: Location, what: string, expected: number, actual: number | string): void {
    const detail = `Expected at most ${expected} ${what}; found ${actual}.`;
    this.add(location, { code: 'limit_exceeded', detail, expected, actual });
  }

  add({ path }: Location, violation: Violation): void {
    this.#issues.push({ ...violation, location: field(...path) });
    if (this.#issues.length === ISSUES_MAX) this.throwIssues();
  }
}

export function describeJson(value: Json): string {
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
