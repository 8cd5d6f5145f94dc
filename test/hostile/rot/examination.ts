// The results of examining a damaged directory.

import { SagittaError } from '../../../src/common/errors.js';
import type { Answer } from './sample.js';

/** An error with the code that clients see; null if it is not one of ours. */
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
  /** The failure of a start or a restore. */
  readonly failure: Failure | null;
  /** Warnings about repairs. */
  readonly warnings: readonly string[];
  readonly answers: readonly Answer[];
  /** After further writes and another start; null if these were not tried. */
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
