// Random operations on a store and on a model of two maps: single and concurrent commits, trims, dropped logs,
// restarts. After each step the store must match the model.

import assert from 'node:assert/strict';
import type { Store, StoreOperation } from '../../src/storage/store.js';
import { createRandom, testSeed } from '../support/random.js';

export interface HistoryOptions {
  readonly open: () => Promise<Store>;
  readonly reopen: (store: Store) => Promise<Store>;
  readonly stepCount: number;
  /** Continues until this many commits have failed, for at most twenty times as many steps. */
  readonly failuresMin?: number;
  readonly recordBytesMax: number;
  /** Whether a commit may fail with this error; the model then stays unchanged. */
  readonly mayFail?: (error: unknown) => boolean;
  /** Called after a failed commit. */
  readonly makeRoom?: () => Promise<void>;
}

interface Model {
  values: Map<string, number>;
  /** Byte length of each record by log and sequence. */
  logs: Map<string, Map<number, number>>;
}

/** Returns the number of failed commits, and the store, which is still open. */
export async function liveRandomly(
  options: HistoryOptions,
): Promise<{ store: Store; failedCount: number }> {
  const random = createRandom(testSeed());
  const below = (limit: number) => Math.floor(random() * limit);
  let store = await options.open();
  let model: Model = { values: new Map(), logs: new Map([['log-0', new Map()]]) };
  let logCount = 1;
  let nextSequence = 1;
  let failedCount = 0;

  const lengthBelow = (limit: number) => Math.floor(limit ** random());
  const operation = (): StoreOperation => {
    const logs = [...model.logs.keys()];
    const log = logs[below(logs.length)] ?? '';
    const key = [`group-${below(3)}`, `key-${below(20)}`];
    const kind = logs.length === 0 ? 12 : below(20);
    if (kind < 8) {
      const record = filled(lengthBelow(options.recordBytesMax), nextSequence);
      return { kind: 'append', log, sequence: nextSequence++, record };
    }
    if (kind < 11) return { kind: 'trim', log, throughSequence: below(nextSequence + 3) };
    if (kind < 12 && logs.length > 1) return { kind: 'dropLog', log };
    if (kind < 13) return { kind: 'append', ...newLog() };
    if (kind < 17) return { kind: 'put', key, value: filled(lengthBelow(5_000), below(250)) };
    if (kind < 19) return { kind: 'remove', key };
    return { kind: 'removeUnder', prefix: key.slice(0, below(3)) };
  };
  const newLog = () => ({
    log: `log-${logCount++}`,
    sequence: nextSequence++,
    record: filled(10, nextSequence - 1),
  });

  const { stepCount, failuresMin = 0 } = options;
  const isWanted = (step: number) =>
    step < stepCount || (failedCount < failuresMin && step < 20 * stepCount);
  for (let step = 0; isWanted(step); step++) {
    const commits = Array.from({ length: 1 + below(4) }, () => {
      const operations = Array.from({ length: 1 + below(4) }, operation);
      const dropped = operations.filter(({ kind }) => kind === 'dropLog').map(logOf);
      // A log that is dropped in a commit is not written to in the same commit, because its name cannot be reused.
      return operations.filter((one) => one.kind === 'dropLog' || !dropped.includes(logOf(one)));
    });
    const dropped = new Set<string | undefined>();
    const running: { operations: StoreOperation[]; outcome: Promise<unknown> }[] = [];
    for (const operations of commits) {
      const allowed = operations.filter(
        (one) => logOf(one) === undefined || !dropped.has(logOf(one)),
      );
      for (const one of allowed) if (one.kind === 'dropLog') dropped.add(one.log);
      const outcome = store.commit(allowed).then(
        () => undefined,
        (error: unknown) => error ?? new Error('rejected with nothing'),
      );
      running.push({ operations: allowed, outcome });
    }
    for (const { operations, outcome } of running) {
      const error = await outcome;
      if (error === undefined) {
        model = applied(model, operations);
        continue;
      }
      if (options.mayFail?.(error) !== true) throw error;
      failedCount++;
      await options.makeRoom?.();
    }
    if (below(25) === 0) store = await options.reopen(store);
    if (below(5) === 0) assertEqual(store, model);
  }
  store = await options.reopen(store);
  assertEqual(store, model);
  return { store, failedCount };
}

function applied(model: Model, operations: readonly StoreOperation[]): Model {
  const values = new Map(model.values);
  const logs = new Map([...model.logs].map(([log, records]) => [log, new Map(records)]));
  for (const operation of operations) {
    switch (operation.kind) {
      case 'append': {
        const records = logs.get(operation.log) ?? new Map<number, number>();
        records.set(operation.sequence, operation.record.byteLength);
        logs.set(operation.log, records);
        break;
      }
      case 'trim':
        for (const sequence of logs.get(operation.log)?.keys() ?? []) {
          if (sequence <= operation.throughSequence) logs.get(operation.log)!.delete(sequence);
        }
        break;
      case 'dropLog':
        logs.delete(operation.log);
        break;
      case 'put':
        values.set(operation.key.join('/'), checksum(operation.value));
        break;
      case 'remove':
        values.delete(operation.key.join('/'));
        break;
      case 'removeUnder':
        for (const key of [...values.keys()]) {
          const parts = key.split('/');
          if (operation.prefix.every((part, i) => parts[i] === part)) values.delete(key);
        }
        break;
    }
  }
  return { values, logs };
}

function assertEqual(store: Store, model: Model): void {
  assert.deepEqual(
    new Map([...store.list([])].map(({ key, value }) => [key.join('/'), checksum(value)])),
    new Map([...model.values].sort(([a], [b]) => (a < b ? -1 : 1))),
  );
  for (const [log, records] of model.logs) {
    const read = [...store.readLog(log, 0)];
    assert.deepEqual(
      read.map(({ sequence, record }) => [sequence, record.byteLength]),
      [...records],
      `log ${log}`,
    );
    for (const { sequence, record } of read) {
      assert.ok(
        record.every((byte) => byte === sequence % 251),
        `record ${sequence} of ${log}`,
      );
    }
    const byteCount = [...records.values()].reduce((sum, byteLength) => sum + byteLength, 0);
    assert.equal(store.logBytes(log), byteCount, `bytes of log ${log}`);
  }
}

function logOf(operation: StoreOperation): string | undefined {
  return 'log' in operation ? operation.log : undefined;
}

function filled(byteLength: number, seed: number): Uint8Array {
  return new Uint8Array(byteLength).fill(seed % 251);
}

function checksum(bytes: Uint8Array): number {
  return bytes.byteLength * 1_000 + (bytes[0] ?? 0);
}
