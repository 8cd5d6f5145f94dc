// Up to where a store has everything of a log. The place is an entry of the store, written in the transaction of what
// was read up to there.

import type { StateReader, StoreKey, StoreOperation } from '../../storage/store.js';
import { LOG_START, type LogLink } from './collection-log.js';

export interface Place extends LogLink {
  /** The last that took over; empty for none, and when it has released the log. */
  readonly owner: string;
}

/** The places in all logs. */
export const PLACES: StoreKey = ['replication'];

export const placeKey = (log: string): StoreKey => [...PLACES, log];

export function placeOperation(log: string, place: Place): StoreOperation {
  return { kind: 'put', key: placeKey(log), value: Buffer.from(JSON.stringify(place)) };
}

/** For a log of which the store has nothing but what was there before its first record. */
export function placeAtStart(log: string): StoreOperation {
  return placeOperation(log, { ...LOG_START, owner: '' });
}

/** Undefined where the store does not have the state of the log at any place. */
export function findPlace(store: Pick<StateReader, 'get'>, log: string): Place | undefined {
  const value = store.get(placeKey(log));
  return value === undefined ? undefined : (JSON.parse(Buffer.from(value).toString()) as Place);
}

/** The start of a log of which the store has nothing. */
export function readPlace(store: Pick<StateReader, 'get'>, log: string): Place {
  return findPlace(store, log) ?? { ...LOG_START, owner: '' };
}

/** The logs in which the store has a place. */
export function placedLogs(store: Pick<StateReader, 'list'>): string[] {
  return [...store.list(PLACES)].map(({ key }) => key[1]!);
}
