// The remaining time of a job that counts what it has done, estimated from its speed so far.

import { formatDuration } from './format.js';

export interface JobProgress {
  readonly doneCount: number;
  readonly totalCount: number;
  /** From the start of the job to the count. */
  readonly elapsedMs: number;
}

/** An earlier estimate would depend on a few rows. */
const ELAPSED_MS_MIN = 1_000;
const SHARE_MIN = 0.01;

/** Undefined if too little is done for an estimate, or nothing is left to do. */
export function remainingMs({ doneCount, totalCount, elapsedMs }: JobProgress): number | undefined {
  const share = totalCount > 0 ? doneCount / totalCount : 0;
  if (elapsedMs < ELAPSED_MS_MIN || share < SHARE_MIN || share >= 1) return undefined;
  return (elapsedMs * (1 - share)) / share;
}

/** Seconds in steps of five, so that the text does not change with every report. */
const STEP_SECONDS = 5;

/** "about 25 s left"; undefined without an estimate. */
export function remainingText(progress: JobProgress): string | undefined {
  const ms = remainingMs(progress);
  if (ms === undefined) return undefined;
  const seconds = Math.ceil(ms / 1_000 / STEP_SECONDS) * STEP_SECONDS;
  if (seconds <= STEP_SECONDS) return 'a few seconds left';
  if (seconds < 60) return `about ${seconds} s left`;
  return `about ${seconds < 3_600 ? `${Math.ceil(seconds / 60)} min` : formatDuration(seconds)} left`;
}

/** 0.123 → 12 %; less than 100 % until everything is done. */
export function shareText({ doneCount, totalCount }: JobProgress): string {
  return totalCount > 0 ? `${Math.floor((100 * doneCount) / totalCount)} %` : '0 %';
}
