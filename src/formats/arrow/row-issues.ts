// Issues with the rows of a batch, by row, so that the client can find each of them.

import { ISSUES_MAX, type Violation } from '../../common/errors.js';

export interface RowIssue extends Violation {
  /** Row of the batch, counted from 0. */
  readonly row: number;
  readonly member: 'id' | 'query_id' | 'values' | 'metadata' | `vectors.${string}`;
}

/** Keeps the first issues and drops the rest. */
export class RowIssues {
  readonly items: RowIssue[] = [];
  readonly #countMax: number;

  constructor(countMax: number = ISSUES_MAX) {
    this.#countMax = countMax;
  }

  get isFull(): boolean {
    return this.items.length >= this.#countMax;
  }

  add(issue: RowIssue): void {
    if (!this.isFull) this.items.push(issue);
  }
}
