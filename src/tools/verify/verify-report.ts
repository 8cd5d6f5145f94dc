// The findings of a verification. Their number is bounded: of a place with many, the first are kept and
// the rest is counted.

import { SagittaError } from '../../common/errors.js';
import type { Finding, ReportFinding } from '../../storage/store-inspection.js';

export interface VerifyCounts {
  collections: number;
  segments: number;
  /** In segment files and in the log, deleted ones included. */
  rows: number;
  deletions: number;
  logRecords: number;
  idempotentReplies: number;
  apiKeys: number;
  bytes: number;
}

export interface VerifyReport {
  readonly directory: string;
  readonly isBackup: boolean;
  readonly errorCount: number;
  readonly noteCount: number;
  /** The first findings of each place. */
  readonly findings: readonly Finding[];
  readonly counts: Readonly<VerifyCounts>;
}

/** More findings of one place would add nothing. */
const FINDINGS_PER_PLACE_MAX = 10;
const FINDINGS_MAX = 1_000;

export class Findings {
  readonly counts: VerifyCounts = {
    collections: 0,
    segments: 0,
    rows: 0,
    deletions: 0,
    logRecords: 0,
    idempotentReplies: 0,
    apiKeys: 0,
    bytes: 0,
  };
  readonly #kept: Finding[] = [];
  readonly #countByPlace = new Map<string, number>();
  #errorCount = 0;
  #noteCount = 0;

  readonly report: ReportFinding = (finding) => {
    if (finding.severity === 'error') this.#errorCount++;
    else this.#noteCount++;
    const count = (this.#countByPlace.get(finding.where) ?? 0) + 1;
    this.#countByPlace.set(finding.where, count);
    if (count <= FINDINGS_PER_PLACE_MAX && this.#kept.length < FINDINGS_MAX) {
      this.#kept.push(finding);
    }
  };

  error(where: string, what: string): void {
    this.report({ severity: 'error', where, what });
  }

  note(where: string, what: string): void {
    this.report({ severity: 'note', where, what });
  }

  toReport({ directory, isBackup }: { directory: string; isBackup: boolean }): VerifyReport {
    return {
      directory,
      isBackup,
      errorCount: this.#errorCount,
      noteCount: this.#noteCount,
      findings: this.#kept,
      counts: this.counts,
    };
  }
}

export function collectionPlace({ id }: { readonly id: string }): string {
  return `collection ${JSON.stringify(id)}`;
}

/** The message of an error, as the end of a line. */
export function describeError(error: unknown): string {
  const { message } = error as Error;
  if (!(error instanceof SagittaError)) return `cannot be read: ${message}`;
  return (message.charAt(0).toLowerCase() + message.slice(1)).replace(/\.$/, '');
}
