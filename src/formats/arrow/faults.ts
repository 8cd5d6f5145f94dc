// What is wrong with rows of a batch: named row by row, so that whoever sent them can find them.

import { type ErrorCode, ISSUES_MAX } from '../../common/errors.js';

export interface RowFault {
  /** Of the batch, from 0. */
  readonly row: number;
  readonly member: 'id' | 'values' | 'metadata';
  readonly code: ErrorCode;
  /** A whole sentence, without the place. */
  readonly detail: string;
  readonly expected?: string | number;
  readonly actual?: string | number;
}

/** Keeps the first of them. */
export class RowFaults {
  readonly items: RowFault[] = [];

  get isFull(): boolean {
    return this.items.length >= ISSUES_MAX;
  }

  add(fault: RowFault): void {
    if (!this.isFull) this.items.push(fault);
  }
}
