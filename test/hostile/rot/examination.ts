// What is found in a damaged directory.

import { SagittaError } from '../../../src/common/errors.js';
import type { Answer } from './sample.js';

/** An error with the code that clients see; null for one that is not ours. */
export interface Failure {
  readonly code: string | null;
  readonly message: string;
}

export interface Verdict {
  /** `severity: where: what`. */
  readonly findings: readonly string[];
  readonly errorCount: number;
  readonly failure: Failure | null;
}

export interface Examination {
  readonly verdict: Verdict;
  /** Of a start or a restore that failed. */
  readonly failure: Failure | null;
  /** What was repaired. */
  readonly warnings: readonly string[];
  readonly answers: readonly Answer[];
  /** After further writes and another start; null when they were not tried. */
  readonly later: {
    readonly failure: Failure | null;
    readonly answers: readonly Answer[];
    readonly verdict: Verdict | null;
  } | null;
}

export function failureOf(error: unknown): Failure {
  const { message, stack } = error as Error;
  return error instanceof SagittaError
    ? { code: error.code, message }
    : { code: null, message: stack ?? message };
}
