// What clients did to one collection and what they were told. Times are milliseconds of one monotonic clock.

import type { Change, Counts, Metric, State, StoredRow } from './model.js';

export type Outcome =
  /** Took effect at this sequence. */
  | { readonly kind: 'acknowledged'; readonly sequence: number; readonly counts: Counts }
  /** Took effect, it is not known where: a part of a stream whose reply has the last sequence only. */
  | { readonly kind: 'done' }
  /** May have taken effect while it was under way, or not. */
  | { readonly kind: 'unknown' }
  /** Had no effect. */
  | { readonly kind: 'none' };

export interface WriteRecord {
  /** As the rows that it wrote have it in `w`. */
  readonly tag: string;
  readonly title: string;
  readonly change: Change;
  readonly startedAt: number;
  /** When it was first acknowledged, or when it could not take effect any more. */
  endedAt: number;
  outcome: Outcome;
  /** The node of a cluster that has acknowledged it. */
  node?: string | undefined;
  /** The part of the same stream that comes before it. */
  readonly after: WriteRecord | null;
}

/** What a reply says about a state: null if the state explains it, else why not. */
export type Explain = (state: State) => string | null;

export interface ReadRecord {
  readonly title: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** The node of a cluster that was asked. */
  readonly node?: string | undefined;
  /** Whether it need only have what this node has replied before; by default all that had been replied. */
  readonly mayLag?: boolean | undefined;
  /** That the request has asked for. */
  readonly minSequence?: number | undefined;
  /** That the reply names; null if it names none. */
  readonly sequence: number | null;
  readonly explain: Explain;
  /** Rows of the reply, by the write that wrote them and the sequence that they had. */
  readonly seen: readonly { readonly tag: string; readonly sequence: number }[];
}

/** Everything in the collection while no client was there, on all nodes of a cluster. */
export interface Dump {
  readonly title: string;
  readonly at: number;
  readonly sequence: number;
  /** In order of arrival. */
  readonly rows: readonly Omit<StoredRow, 'place'>[];
}

/** The counts of a stream are those of all of its parts. */
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
  /** The last one is after all reads and writes. */
  readonly dumps: Dump[];
  /** What is wrong whatever the states were, such as a replay with another reply. */
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
