// A store in memory with the same contract: for tests and for services that keep nothing. Its
// state can be handed to a second store, which then stands where a restarted process would.

import { assert } from '../errors.js';
import { LogLengths } from './log-lengths.js';
import type { LogEntry, Store, StoreKey, StoreOperation } from './store.js';

export interface MemoryState {
  /** By key, its parts as JSON. */
  readonly values: Map<string, { key: StoreKey; value: Uint8Array }>;
  readonly logs: Map<string, LogEntry[]>;
  readonly blobs: Map<string, Uint8Array>;
}

export function createMemoryState(): MemoryState {
  return { values: new Map(), logs: new Map(), blobs: new Map() };
}

export interface MemoryStoreOptions {
  readonly state?: MemoryState;
  /** Runs before each commit takes effect: a test delays it or makes it fail. */
  readonly beforeCommit?: (operations: readonly StoreOperation[]) => Promise<void>;
}

export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { values, logs, blobs } = options.state ?? createMemoryState();
  let lastCommit: Promise<unknown> = Promise.resolve();
  const lengths = new LogLengths();
  let isClosed = false;

  async function write(operations: readonly StoreOperation[]): Promise<void> {
    await options.beforeCommit?.(operations);
    for (const operation of operations) apply(operation);
  }

  function apply(operation: StoreOperation): void {
    switch (operation.kind) {
      case 'append': {
        const log = logs.get(operation.log) ?? [];
        log.push({ sequence: operation.sequence, record: new Uint8Array(operation.record) });
        logs.set(operation.log, log);
        lengths.add(operation.log, operation.sequence, operation.record.byteLength);
        break;
      }
      case 'trim': {
        const log = logs.get(operation.log) ?? [];
        logs.set(
          operation.log,
          log.filter((entry) => entry.sequence > operation.throughSequence),
        );
        lengths.trim(operation.log, operation.throughSequence);
        break;
      }
      case 'dropLog':
        logs.delete(operation.log);
        lengths.drop(operation.log);
        break;
      case 'put':
        values.set(JSON.stringify(operation.key), {
          key: [...operation.key],
          value: new Uint8Array(operation.value),
        });
        break;
      case 'remove':
        values.delete(JSON.stringify(operation.key));
        break;
      case 'removeUnder':
        for (const { key } of under(operation.prefix)) values.delete(JSON.stringify(key));
        break;
    }
  }

  function under(prefix: StoreKey): { key: StoreKey; value: Uint8Array }[] {
    return [...values.values()]
      .filter(({ key }) => prefix.every((part, i) => key[i] === part))
      .sort((a, b) => compareKeys(a.key, b.key));
  }

  return {
    commit(operations) {
      assert(!isClosed, 'no commit after close');
      const commit = lastCommit.then(() => write(operations));
      lastCommit = commit.catch(() => {});
      return commit;
    },
    get(key) {
      const entry = values.get(JSON.stringify(key));
      return entry && new Uint8Array(entry.value);
    },
    list(prefix) {
      return under(prefix).map(({ key, value }) => ({ key, value: new Uint8Array(value) }));
    },
    readLog(log, afterSequence) {
      const entries = (logs.get(log) ?? []).filter((entry) => entry.sequence > afterSequence);
      for (const { sequence, record } of entries) lengths.add(log, sequence, record.byteLength);
      return entries.map(({ sequence, record }) => ({ sequence, record: new Uint8Array(record) }));
    },
    logBytes(log) {
      return lengths.bytesOf(log);
    },
    async writeBlob(name, parts) {
      const whole = Buffer.concat([...parts].map((part) => new Uint8Array(part)));
      blobs.set(name, new Uint8Array(whole));
    },
    async readBlob(name) {
      const blob = blobs.get(name);
      if (blob === undefined) return undefined;
      const shared = new Uint8Array(new SharedArrayBuffer(blob.byteLength));
      shared.set(blob);
      return shared;
    },
    async removeBlob(name) {
      blobs.delete(name);
    },
    async listBlobs(prefix = '') {
      return [...blobs.keys()].filter((name) => name.startsWith(prefix)).sort();
    },
    async close() {
      isClosed = true;
      await lastCommit;
    },
  };
}

function compareKeys(a: StoreKey, b: StoreKey): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = Buffer.compare(Buffer.from(a[i]!), Buffer.from(b[i]!));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}
