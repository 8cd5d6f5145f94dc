// A store in memory with the same contract, for tests and for services that keep nothing: the frames of commits are kept
// in place of a journal. Its state can be given to a second store, which is then like the store of a restarted process.

import { assert } from '../common/errors.js';
import { assertBlobName } from './blob-files.js';
import { CommitGroup } from './commit-group.js';
import { entriesOf, NO_FRAME } from './frame.js';
import type { Place } from './place.js';
import { StateView } from './state-view.js';
import type { LogEntry, Store, StoreKey, StoreOperation, StoreSnapshot } from './store.js';
import { type Change, StoreState } from './store-state.js';

/** Frames are removed when so many are not needed any more. */
const DEAD_FRAMES_MAX = 64;

export interface MemoryState {
  readonly entries: StoreState;
  /** The frames that have records and long values, by number. */
  readonly frames: Map<number, Buffer>;
  readonly blobs: Map<string, Uint8Array>;
}

export function createMemoryState(): MemoryState {
  return { entries: new StoreState(), frames: new Map(), blobs: new Map() };
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
  readonly #view: StateView;
  readonly #dropped = new Set<string>();
  #nextFrame: number;
  #lastCommit: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor({ state = createMemoryState(), beforeCommit }: MemoryStoreOptions) {
    this.#state = state;
    this.#beforeCommit = beforeCommit;
    this.#nextFrame = Math.max(0, ...state.frames.keys()) + 1;
    this.#view = viewOf(state);
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    assert(!this.#isClosed, 'no commit after close');
    const commit = this.#lastCommit.then(() => this.#write(operations));
    this.#lastCommit = commit.catch(() => {});
    return commit;
  }

  async #write(operations: readonly StoreOperation[]): Promise<void> {
    await this.#beforeCommit?.(operations);
    const { entries, frames } = this.#state;
    const group = new CommitGroup(entries, this.#dropped);
    group.add(operations);
    const number = this.#nextFrame++;
    const { parts, frame } = group.builder.finish(NO_FRAME, 0, 0);
    for (const entry of entriesOf(frame, number)) entries.apply(entry as Change);
    for (const log of group.dropped) this.#dropped.add(log);
    if (entries.liveBytes.has(number)) frames.set(number, Buffer.concat(parts));
    if (frames.size <= 2 * entries.liveBytes.size + DEAD_FRAMES_MAX) return;
    for (const each of frames.keys()) if (!entries.liveBytes.has(each)) frames.delete(each);
  }

  get(key: StoreKey): Uint8Array | undefined {
    return this.#view.get(key);
  }

  list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    return this.#view.list(prefix);
  }

  count(prefix: StoreKey): number {
    return this.#view.count(prefix);
  }

  /** At once, since frames are removed when nothing refers to them. */
  readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    return [...this.#view.readLog(log, afterSequence)];
  }

  logBytes(log: string): number {
    return this.#state.entries.logs.get(log)?.records.byteLength ?? 0;
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
    this.#dropped.delete(log);
  }

  async withSnapshot<Result>(use: (snapshot: StoreSnapshot) => Promise<Result>): Promise<Result> {
    await this.#lastCommit;
    const { entries, frames, blobs } = this.#state;
    const reader = new MemoryStore({
      state: {
        entries: new StoreState(entries),
        frames: new Map(frames),
        blobs: new Map(blobs),
      },
    });
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
}

function viewOf({ entries, frames }: MemoryState): StateView {
  return new StateView(entries, {
    read({ file, offset, byteLength }: Place) {
      return new Uint8Array(frames.get(file)!.subarray(offset, offset + byteLength));
    },
    retain: () => () => {},
  });
}
