// How far a store has applied a log. The position is an entry of the store, written in the transaction of the
// operations that it covers.

import type { StateReader, StoreKey, StoreOperation } from '../../storage/store.js';
import { LOG_START, type LogLink } from './collection-log.js';
import { APPLIED_POSITIONS, putEntry, readEntry } from './store-entries.js';

export interface AppliedPosition extends LogLink {
  /** The process that took over last; empty if none has, or if it has released the log. */
  readonly owner: string;
}

const START: AppliedPosition = { ...LOG_START, owner: '' };

export const appliedPositionKey = (log: string): StoreKey => [...APPLIED_POSITIONS, log];

export function appliedPositionOperation(log: string, position: AppliedPosition) {
  return putEntry(appliedPositionKey(log), position);
}

/** For a store that has the state of a log before its first record. */
export function startPositionOperation(log: string): StoreOperation {
  return appliedPositionOperation(log, START);
}

/** Undefined where the store does not have the state of the log at any position. */
export function findAppliedPosition(
  store: Pick<StateReader, 'get'>,
  log: string,
): AppliedPosition | undefined {
  return readEntry(store, appliedPositionKey(log));
}

/** The start of the log where the store has nothing of it. */
export function readAppliedPosition(store: Pick<StateReader, 'get'>, log: string): AppliedPosition {
  return findAppliedPosition(store, log) ?? START;
}

/** The logs of which the store has an applied position. */
export function appliedLogs(store: Pick<StateReader, 'list'>): string[] {
  return [...store.list(APPLIED_POSITIONS)].map(({ key }) => key[1]!);
}
