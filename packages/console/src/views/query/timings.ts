// Splits the time of a query into its parts.

import type { Explain } from '@sagitta/client';

export interface TimedPart {
  readonly name: 'embed' | 'filter' | 'search' | 'assemble' | 'transfer';
  readonly label: string;
  readonly ms: number;
  /** The share of the total time, from 0 to 1. */
  readonly share: number;
}

/** `totalMs` is the time that the page waited. Time that the server does not explain counts as transfer and the rest. */
export function timedParts(explain: Explain, totalMs: number): readonly TimedPart[] {
  const { embed_ms: embedMs } = explain;
  const parts = [
    ...(embedMs === undefined
      ? []
      : [{ name: 'embed', label: 'Text to vector', ms: embedMs } as const]),
    { name: 'filter', label: 'Filter', ms: explain.filter_ms },
    { name: 'search', label: 'Search', ms: explain.search_ms },
    { name: 'assemble', label: 'Assemble', ms: explain.assemble_ms },
  ] as const;
  const explained = parts.reduce((sum, { ms }) => sum + ms, 0);
  const rest = Math.max(0, totalMs - explained);
  const all = [...parts, { name: 'transfer', label: 'Transfer and the rest', ms: rest } as const];
  const whole = Math.max(totalMs, explained, Number.MIN_VALUE);
  return all.map((part) => ({ ...part, share: part.ms / whole }));
}
