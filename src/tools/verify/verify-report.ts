// The findings of a verification. Their number is bounded: of many findings about the same subject, the first are kept
// and the rest are only counted.

import { SagittaError } from '../../common/errors.js';
import type { Finding, ReportFinding } from '../../storage/store-inspection.js';

export interface VerifyCounts {
  collections: number;
  segments: number;
  /** Rows in segment files and in the log, including deleted ones. */
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
  /** The first findings about each subject. */
  readonly findings: readonly Finding[];
  readonly counts: Readonly<VerifyCounts>;
}

/** Further findings about the same subject would add nothing. */
const FINDINGS_PER_SUBJECT_MAX = 10;
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
  readonly #countBySubject = new Map<string, number>();
  #errorCount = 0;
  #noteCount = 0;

  readonly report: ReportFinding = (finding) => {
    if (finding.severity === 'error') this.#errorCount++;
    else this.#noteCount++;
    const count = (this.#countBySubject.get(finding.where) ?? 0) + 1;
    this.#countBySubject.set(finding.where, count);
    if (count <= FINDINGS_PER_SUBJECT_MAX && this.#kept.length < FINDINGS_MAX) {
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

export function collectionLabel({ id }: { readonly id: string }): string {
  return `collection ${JSON.stringify(id)}`;
}

/** Describes an error so that it can end a line. */
export function describeDamage(error: unknown): string {
  const { message } = error as Error;
  if (!(error instanceof SagittaError)) return `cannot be read: ${message}`;
  return (message.charAt(0).toLowerCase() + message.slice(1)).replace(/\.$/, '');
}
