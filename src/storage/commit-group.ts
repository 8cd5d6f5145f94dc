// Commits that are written together. Each is validated before it is added, so an invalid commit leaves no trace and
// does not affect the others.

import { assert } from '../common/errors.js';
import { FrameBuilder } from './frame.js';
import type { StoreOperation } from './store.js';
import { encodeKey, rangeUnder, requireName } from './store-format.js';
import type { StoreState } from './store-state.js';

/** Greater than every valid sequence. */
const SEQUENCE_END = Number.MAX_SAFE_INTEGER;
/** Maximum length of a log name in UTF-8. */
const LOG_NAME_BYTES_MAX = 2_000;

export class CommitGroup {
  readonly builder = new FrameBuilder();
  /** Logs dropped by this group. */
  readonly dropped = new Set<string>();
  #mayUseReserve = true;
  readonly #state: StoreState;
  readonly #droppedBefore: ReadonlySet<string>;
  /** The greatest sequence that this group appends to each log. */
  readonly #lasts = new Map<string, number>();

  constructor(state: StoreState, droppedBefore: ReadonlySet<string>) {
    this.#state = state;
    this.#droppedBefore = droppedBefore;
  }

  /** Whether every commit removes something and none appends records. */
  get mayUseReserve(): boolean {
    return this.#mayUseReserve;
  }

  /** Adds a whole commit, or throws and adds nothing. */
  add(operations: readonly StoreOperation[]): void {
    this.#validate(operations);
    const adds = operations.some(({ kind }) => kind === 'append');
    const removes = operations.some(({ kind }) => kind !== 'append' && kind !== 'put');
    if (adds || !removes) this.#mayUseReserve = false;
    for (const operation of operations) this.#write(operation);
  }

  #validate(operations: readonly StoreOperation[]): void {
    const lasts = new Map<string, number>();
    const dropped = new Set<string>();
    for (const operation of operations) {
      switch (operation.kind) {
        case 'append': {
          const { log, sequence } = operation;
          requireLogName(log);
          const isDropped =
            dropped.has(log) || this.dropped.has(log) || this.#droppedBefore.has(log);
          assert(!isDropped, `log ${log} was dropped and its name cannot be used again`);
          const last = lasts.get(log) ?? this.#lasts.get(log) ?? this.#state.lastOf(log);
          assert(
            Number.isSafeInteger(sequence) && sequence > last && sequence < SEQUENCE_END,
            `the next sequence of log ${log} must be greater than ${last}, found ${sequence}`,
          );
          lasts.set(log, sequence);
          break;
        }
        case 'put':
        case 'remove':
          encodeKey(operation.key);
          break;
        case 'removeUnder':
          rangeUnder(operation.prefix);
          break;
        case 'trim':
          requireLogName(operation.log);
          break;
        case 'dropLog':
          requireLogName(operation.log);
          dropped.add(operation.log);
          break;
      }
    }
  }

  #write(operation: StoreOperation): void {
    switch (operation.kind) {
      case 'append': {
        const { log, sequence, record } = operation;
        this.#lasts.set(log, sequence);
        this.builder.add({ kind: 'append', log, sequence, extent: record });
        break;
      }
      case 'put':
        this.builder.add({
          kind: 'put',
          key: encodeKey(operation.key),
          value: operation.value,
        });
        break;
      case 'remove':
        this.builder.add({ kind: 'remove', key: encodeKey(operation.key) });
        break;
      case 'removeUnder':
        this.builder.add({ kind: 'removeRange', ...rangeUnder(operation.prefix) });
        break;
      case 'dropLog':
        this.dropped.add(operation.log);
        this.builder.add(operation);
        break;
      case 'trim':
        this.builder.add(operation);
        break;
    }
  }
}

function requireLogName(log: string): void {
  requireName(log, 'the name of a log');
  const byteLength = Buffer.byteLength(log);
  assert(
    byteLength <= LOG_NAME_BYTES_MAX,
    `the name of a log has at most ${LOG_NAME_BYTES_MAX} bytes, found ${byteLength}`,
  );
}
