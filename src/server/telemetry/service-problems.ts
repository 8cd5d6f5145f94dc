// What is wrong with the service: the states of the server itself, and what other parts of the process find; with the
// gauges that show it.

import type { Preparation } from '../../common/preparation.js';
import {
  isWritable,
  PROBLEM_CODES,
  PROBLEM_MEANINGS,
  type ProblemCode,
  type ServiceProblem,
} from '../../common/problems.js';
import type { Metrics } from '../../platform/metrics.js';

export interface ServiceProblemsOptions {
  readonly preparation?: Preparation | null;
  /** What other parts of the process find. */
  readonly problems?: () => readonly ServiceProblem[];
}

export function problemsOf(
  { preparation, problems }: ServiceProblemsOptions,
  isStopping: () => boolean,
): () => readonly ServiceProblem[] {
  return () => [
    ...(isStopping() ? [stateOf('stopping')] : []),
    ...(preparation?.isDone === false ? [stateOf('starting')] : []),
    ...(problems?.() ?? []),
  ];
}

/** A state that the server passes through, which lasts for seconds. */
function stateOf(code: ProblemCode): ServiceProblem {
  const meaning = PROBLEM_MEANINGS[code];
  const detail = `${meaning[0]!.toUpperCase()}${meaning.slice(1)}.`;
  return { code, detail, seconds: 0, blocksWrites: true };
}

export function addProblemGauges(
  metrics: Metrics,
  problems: () => readonly ServiceProblem[],
): void {
  metrics.addReading('sagitta_write_ready', () => (isWritable(problems()) ? 1 : 0));
  metrics.addReadings('sagitta_problems', () => {
    const found = new Set(problems().map(({ code }) => code));
    return new Map(PROBLEM_CODES.map((code) => [code, found.has(code) ? 1 : 0]));
  });
}
