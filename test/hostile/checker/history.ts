// What clients did to one collection and what they were told. Times are milliseconds of one monotonic clock.

import type { Change, Counts, Metric, State, StoredRow } from './model.js';

export type Outcome =
  /** It took effect at this sequence. */
  | { readonly kind: 'acknowledged'; readonly sequence: number; readonly counts: Counts }
  /** It took effect at an unknown sequence, like a part of a stream whose reply names only the last sequence. */
  | { readonly kind: 'done' }
  /** It may or may not have taken effect while it was running. */
  | { readonly kind: 'unknown' }
  /** It had no effect. */
  | { readonly kind: 'none' };

export interface WriteRecord {
  /** The value of `w` in the rows that it wrote. */
  readonly tag: string;
  readonly title: string;
  readonly change: Change;
  readonly startedAt: number;
  /** When it was first acknowledged, or when it could no longer take effect. */
  endedAt: number;
  outcome: Outcome;
  /** The node of a cluster that acknowledged it. */
  node?: string | undefined;
  /** The previous part of the same stream. */
  readonly after: WriteRecord | null;
}

/** Checks a reply against a state: null if the state explains it, otherwise the reason why not. */
export type Explain = (state: State) => string | null;

export interface ReadRecord {
  readonly title: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** The node of a cluster that was asked. */
  readonly node?: string | undefined;
  /** Whether it need only include what this node has replied before; by default, everything replied before. */
  readonly mayLag?: boolean | undefined;
  /** The minimum sequence that the request asked for. */
  readonly minSequence?: number | undefined;
  /** The sequence named in the reply; null if there is none. */
  readonly sequence: number | null;
  readonly explain: Explain;
  /** Rows in the reply, by the write that wrote them and their sequences. */
  readonly seen: readonly { readonly tag: string; readonly sequence: number }[];
}

/** All data of the collection while no client was running, on all nodes of a cluster. */
export interface Dump {
  readonly title: string;
  readonly at: number;
  readonly sequence: number;
  /** In order of arrival. */
  readonly rows: readonly Omit<StoredRow, 'place'>[];
}

/** The counts of a stream are the sums of those of its parts. */
export interface StreamRecord {
  readonly title: string;
  readonly parts: readonly WriteRecord[];
  readonly counts: Counts;
}

export interface History {
  readonly collection: string;
  readonly metric: Metric;
  readonly writes: WriteRecord[];
  readonly reads: ReadRecord[];
  readonly streams: StreamRecord[];
  /** The last dump follows all reads and writes. */
  readonly dumps: Dump[];
  /** Faults that do not depend on the states, such as a replay with a different reply. */
  readonly faults: Fault[];
}

export type FaultKind =
  | 'lost write'
  | 'unexplained write'
  | 'wrong reply'
  | 'unexplained read'
  | 'stale read'
  | 'order'
  | 'different replay'
  | 'different page'
  | 'different node'
  | 'unexpected reply'
  | 'undecided';

export interface Fault {
  readonly kind: FaultKind;
  readonly detail: string;
}

export function createHistory(collection: string, metric: Metric): History {
  return { collection, metric, writes: [], reads: [], streams: [], dumps: [], faults: [] };
}
