// What clients of a simulation ask for, and what became of it.

import type { LogPositions } from '../../../src/server/wire/consistency.js';

/** A change that a client asks for. Its marker is in the metadata that it writes, so that its record can be recognised. */
export interface Write {
  readonly kind: 'insert' | 'upsert' | 'bulk' | 'patch' | 'delete' | 'alias' | 'create' | 'drop';
  readonly marker: string;
  readonly collection: string;
  /** The id of the row, the name of the alias, or for `create` and `drop` the id of the collection. */
  readonly key: string;
  /** The sequence that the row must have; undefined for any. */
  readonly ifSequence: number | undefined;
  /** Repeated under this key until it is answered; undefined for a write that is sent once. */
  readonly idempotencyKey: string | undefined;
}

export interface Read {
  readonly kind: 'read';
  readonly collection: string;
  /** All ids that clients use. */
  readonly keys: readonly string[];
  readonly isStrong: boolean;
}

export interface Row {
  readonly id: string;
  readonly sequence: number;
  readonly marker: string;
}

/** The rows at some sequence from `from` to `to`. */
export interface ReadResult {
  readonly incarnation: string;
  readonly rows: readonly Row[];
  readonly from: number;
  readonly to: number;
}

export interface Reply<Result> {
  readonly result: Result;
  /** The positions that the client has seen with it. */
  readonly session: LogPositions;
}

/** `sequence` is 0 for a change of the catalogue. */
export type Outcome =
  | { readonly kind: 'acknowledged'; readonly sequence: number }
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'unknown' };

/** Times are virtual; those of attempts without an end are infinite. */
export interface WriteRecord {
  readonly write: Write;
  readonly startedAtMs: number;
  endedAtMs: number;
  outcome: Outcome;
}

export interface ReadRecord {
  readonly read: Read;
  readonly client: number;
  readonly node: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly result: ReadResult;
  /** The sequence that the client has seen in its session before; 0 without one. */
  readonly seenSequence: number;
}
