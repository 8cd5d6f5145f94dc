// A store in memory with the same contract, for tests and for services that keep nothing. Its state can
// be given to a second store, which is then like the store of a restarted process.

import { assert } from '../common/errors.js';
import { assertBlobName } from './blob-files.js';
import { CommitPlan } from './commit-plan.js';
import { LogRegistry } from './log-registry.js';
import type { LogEntry, Store, StoreKey, StoreOperation } from './store.js';

export interface MemoryState {
  /** By key, as JSON of its parts. */
  readonly values: Map<string, { key: StoreKey; value: Uint8Array }>;
  readonly logs: Map<string, LogEntry[]>;
  /** By log, the greatest sequence it ever had. */
  readonly lastSequences: Map<string, number>;
  readonly blobs: Map<string, Uint8Array>;
}

export function createMemoryState(): MemoryState {
  return { values: new Map(), logs: new Map(), lastSequences: new Map(), blobs: new Map() };
}

export interface MemoryStoreOptions {
  readonly state?: MemoryState;
  /** Runs before each commit takes effect: a test delays it or makes it fail. */
  readonly beforeCommit?: (operations: readonly StoreOperation[]) => Promise<void>;
}

export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { values, logs, lastSequences, blobs } = options.state ?? createMemoryState();
  const registry = new LogRegistry();
  for (const [log, sequence] of lastSequences) registry.enter(log, sequence, 0);
  let lastCommit: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  async function write(operations: readonly StoreOperation[]): Promise<void> {
    await options.beforeCommit?.(operations);
    const plan = new CommitPlan(registry, () => []);
    plan.add(operations);
    for (const operation of operations) apply(operation);
    for (const change of plan.changes) registry.apply(change);
  }

  function apply(operation: StoreOperation): void {
    switch (operation.kind) {
      case 'append': {
        const { log, sequence, record } = operation;
        const entries = logs.get(log) ?? [];
        entries.push({ sequence, record: new Uint8Array(record) });
        logs.set(log, entries);
        lastSequences.set(log, sequence);
        break;
      }
      case 'trim': {
        const { log, throughSequence } = operation;
        const kept = logs.get(log)?.filter(({ sequence }) => sequence > throughSequence);
        if (kept !== undefined) logs.set(log, kept);
        break;
      }
      case 'dropLog':
        logs.delete(operation.log);
        lastSequences.delete(operation.log);
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
      for (const { sequence, record } of entries) registry.count(log, sequence, record.byteLength);
      return entries.map(({ sequence, record }) => ({ sequence, record: new Uint8Array(record) }));
    },
    logBytes(log) {
      return registry.byteLengthOf(log);
    },
    async writeBlob(name, parts) {
      assertBlobName(name);
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
