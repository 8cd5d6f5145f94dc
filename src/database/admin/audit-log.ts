// The newest audit events, in memory and in the store, so that they survive a restart. Events are written in
// groups shortly after they happen: recording an event delays no request, and a crash may lose the last ones. The
// complete record is the log of the process.

import type { Clock } from '../../common/clock.js';
import type { Logger } from '../../common/logger.js';
import type { Store, StoreKey, StoreOperation } from '../../storage/store.js';
import { keys } from '../layout/keys.js';

/** How long an event waits for others that are written with it. */
const WRITE_DELAY_MS = 1_000;
/** Delay before the next attempt after a failure, such as a full disk. */
const RETRY_MS = 10_000;

export interface AuditEvent {
  /** The number of the event in the data directory, from 1. */
  readonly sequence: number;
  /** Unix time in milliseconds. */
  readonly atMs: number;
  /** The operation, such as `collection.create`. */
  readonly operation: string;
  /** The id of the principal. */
  readonly principal: string;
  /** The address of the client; `local` on the control socket. */
  readonly client: string;
  /** The node of the cluster that forwarded the request to this one; null for none. */
  readonly via: string | null;
  /** The id or name of the object of the operation; null when the request names none. */
  readonly target: string | null;
  /** The status of the reply. */
  readonly status: number;
  readonly requestId: string;
  readonly traceId: string | null;
  /** Requests without a credential before this one that were not logged. */
  readonly unloggedCount: number;
}

interface AuditPage {
  /** Newest first. */
  readonly events: readonly AuditEvent[];
  readonly hasMore: boolean;
  /** The number of kept events that match. */
  readonly total: number;
}

interface AuditLogOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The number of events that are kept. */
  readonly countMax: number;
}

export class AuditLog {
  readonly #options: AuditLogOptions;
  /** Oldest first. */
  readonly #events: AuditEvent[] = [];
  /** The sequence of the first event in the store. */
  #storedFrom: number;
  /** The sequence of the last event that was written to the store. */
  #storedThrough: number;
  #lastSequence: number;
  #timer: NodeJS.Timeout | undefined;
  /** The last write; each starts after the previous one. */
  #writing = Promise.resolve();

  constructor(options: AuditLogOptions) {
    this.#options = options;
    const { events, firstSequence } = readStored(options.store, options.logger);
    this.#events.push(...events.slice(Math.max(0, events.length - options.countMax)));
    this.#lastSequence = events.at(-1)?.sequence ?? 0;
    this.#storedThrough = this.#lastSequence;
    this.#storedFrom = firstSequence;
  }

  add(event: Omit<AuditEvent, 'sequence' | 'atMs'>): void {
    this.#lastSequence++;
    this.#events.push({
      sequence: this.#lastSequence,
      atMs: this.#options.clock.now(),
      ...event,
    });
    if (this.#events.length > this.#options.countMax) this.#events.shift();
    this.#writeAfter(WRITE_DELAY_MS);
  }

  /** A page of the matching events before the sequence `before`. */
  list(request: {
    readonly before: number;
    readonly limit: number;
    readonly matches: (event: AuditEvent) => boolean;
  }): AuditPage {
    const matching = this.#events.filter(request.matches).reverse();
    const rest = matching.filter(({ sequence }) => sequence < request.before);
    return {
      events: rest.slice(0, request.limit),
      hasMore: rest.length > request.limit,
      total: matching.length,
    };
  }

  /** The time of the oldest kept event; null for none. */
  get sinceMs(): number | null {
    return this.#events[0]?.atMs ?? null;
  }

  /** Writes the events that have not been written. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
    clearTimeout(this.#timer);
  }

  #writeAfter(delayMs: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    }, delayMs).unref();
  }

  async #write(): Promise<void> {
    const lastSequence = this.#lastSequence;
    if (lastSequence === this.#storedThrough) return;
    const firstKept = this.#events[0]?.sequence ?? lastSequence + 1;
    const operations: StoreOperation[] = [];
    const firstStored = Math.min(firstKept, this.#storedThrough + 1);
    for (let sequence = this.#storedFrom; sequence < firstStored; sequence++) {
      operations.push({ kind: 'remove', key: keys.auditEvent(sequence) });
    }
    for (const event of this.#events) {
      if (event.sequence <= this.#storedThrough) continue;
      const value = Buffer.from(JSON.stringify(event));
      operations.push({ kind: 'put', key: keys.auditEvent(event.sequence), value });
    }
    try {
      await this.#options.store.commit(operations);
      this.#storedFrom = firstKept;
      this.#storedThrough = lastSequence;
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'audit events could not be stored yet');
      this.#writeAfter(RETRY_MS);
    }
  }
}

/** The stored events, oldest first. Damaged events are skipped, because they are no reason not to start. */
function readStored(
  store: Store,
  logger: Logger,
): { events: readonly AuditEvent[]; firstSequence: number } {
  const events: AuditEvent[] = [];
  let firstSequence: number | undefined;
  let damagedCount = 0;
  for (const { key, value } of store.list(keys.auditEvents)) {
    firstSequence ??= Number(key[1]);
    const event = decodeAuditEvent(key, value);
    if (event === null) damagedCount++;
    else events.push(event);
  }
  if (damagedCount > 0) logger.warn({ count: damagedCount }, 'stored audit events are damaged');
  return { events, firstSequence: firstSequence ?? 1 };
}

const isText = (value: unknown) => typeof value === 'string';
const isTextOrNull = (value: unknown) => value === null || isText(value);
const isCount = (value: unknown) => Number.isSafeInteger(value);

const CHECKS: Readonly<Record<keyof AuditEvent, (value: unknown) => boolean>> = {
  sequence: isCount,
  atMs: isCount,
  operation: isText,
  principal: isText,
  client: isText,
  via: isTextOrNull,
  target: isTextOrNull,
  status: isCount,
  requestId: isText,
  traceId: isTextOrNull,
  unloggedCount: isCount,
};

/** Null if the bytes are not the event of the key. */
export function decodeAuditEvent(key: StoreKey, bytes: Uint8Array): AuditEvent | null {
  try {
    const found = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>;
    const isValid = Object.entries(CHECKS).every(([name, check]) => check(found[name]));
    return isValid && found.sequence === Number(key[1]) ? (found as unknown as AuditEvent) : null;
  } catch {
    return null;
  }
}
