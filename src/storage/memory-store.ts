// A store in memory with the same contract, for tests and for services that keep nothing. Its state can
// be given to a second store, which is then like the store of a restarted process.

import { assert } from '../common/errors.js';
import { assertBlobName } from './blob-files.js';
import { CommitPlan } from './commit-plan.js';
import { CHAIN_START } from './log-chain.js';
import { LogRegistry } from './log-registry.js';
import type { LogEntry, Store, StoreKey, StoreOperation, StoreSnapshot } from './store.js';

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
  return new MemoryStore(options);
}

class MemoryStore implements Store {
  readonly #state: MemoryState;
  readonly #beforeCommit: MemoryStoreOptions['beforeCommit'];
  readonly #registry = new LogRegistry();
  #lastCommit: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor({ state = createMemoryState(), beforeCommit }: MemoryStoreOptions) {
    this.#state = state;
    this.#beforeCommit = beforeCommit;
    for (const [log, sequence] of state.lastSequences) {
      const last = { sequence, digest: CHAIN_START.digest };
      this.#registry.enter(log, { last, trimmedThrough: 0 });
    }
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    assert(!this.#isClosed, 'no commit after close');
    const commit = this.#lastCommit.then(() => this.#write(operations));
    this.#lastCommit = commit.catch(() => {});
    return commit;
  }

  get(key: StoreKey): Uint8Array | undefined {
    const entry = this.#state.values.get(JSON.stringify(key));
    return entry && new Uint8Array(entry.value);
  }

  list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    return this.#under(prefix).map(({ key, value }) => ({ key, value: new Uint8Array(value) }));
  }

  readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    const entries = this.#state.logs.get(log) ?? [];
    const found = entries.filter(({ sequence }) => sequence > afterSequence);
    for (const { sequence, record } of found)
      this.#registry.count(log, sequence, record.byteLength);
    return found.map(({ sequence, record }) => ({ sequence, record: new Uint8Array(record) }));
  }

  logBytes(log: string): number {
    return this.#registry.byteLengthOf(log);
  }

  async writeBlob(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    assertBlobName(name);
    const whole = Buffer.concat([...parts].map((part) => new Uint8Array(part)));
    this.#state.blobs.set(name, new Uint8Array(whole));
  }

  async readBlob(name: string): Promise<Uint8Array | undefined> {
    const blob = this.#state.blobs.get(name);
    if (blob === undefined) return undefined;
    const shared = new Uint8Array(new SharedArrayBuffer(blob.byteLength));
    shared.set(blob);
    return shared;
  }

  async mapBlob(): Promise<null> {
    return null;
  }

  async copyBlob(from: string, to: string): Promise<void> {
    assertBlobName(to);
    const blob = this.#state.blobs.get(from);
    assert(blob !== undefined, `there is a blob ${from}`);
    this.#state.blobs.set(to, blob);
  }

  async removeBlob(name: string): Promise<void> {
    this.#state.blobs.delete(name);
  }

  async listBlobs(prefix = ''): Promise<string[]> {
    return [...this.#state.blobs.keys()].filter((name) => name.startsWith(prefix)).sort();
  }

  async eraseLog(log: string): Promise<void> {
    await this.commit([{ kind: 'dropLog', log }]);
    this.#registry.forget(log);
  }

  async withSnapshot<Result>(use: (snapshot: StoreSnapshot) => Promise<Result>): Promise<Result> {
    await this.#lastCommit;
    const { values, logs, lastSequences, blobs } = this.#state;
    const state: MemoryState = {
      values: new Map(values),
      logs: new Map([...logs].map(([log, entries]) => [log, [...entries]])),
      lastSequences: new Map(lastSequences),
      blobs: new Map(blobs),
    };
    const reader = new MemoryStore({ state });
    return use({
      get: (key) => reader.get(key),
      list: (prefix) => reader.list(prefix),
      readLog: (log, after) => reader.readLog(log, after),
      readBlob: (name) => reader.readBlob(name),
      endEntries() {},
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lastCommit;
  }

  async #write(operations: readonly StoreOperation[]): Promise<void> {
    await this.#beforeCommit?.(operations);
    const plan = new CommitPlan(this.#registry, () => []);
    plan.add(operations);
    for (const operation of operations) this.#apply(operation);
    for (const change of plan.changes) this.#registry.apply(change);
  }

  #apply(operation: StoreOperation): void {
    const { values, logs, lastSequences } = this.#state;
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
        for (const { key } of this.#under(operation.prefix)) values.delete(JSON.stringify(key));
        break;
    }
  }

  #under(prefix: StoreKey): { key: StoreKey; value: Uint8Array }[] {
    return [...this.#state.values.values()]
      .filter(({ key }) => prefix.every((part, i) => key[i] === part))
      .sort((a, b) => compareKeys(a.key, b.key));
  }
}

function compareKeys(a: StoreKey, b: StoreKey): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = Buffer.compare(Buffer.from(a[i]!), Buffer.from(b[i]!));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}
