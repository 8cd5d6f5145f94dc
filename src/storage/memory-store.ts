// A store in memory with the same contract, for tests and for services that keep nothing. It keeps the frames of
// commits instead of a journal. Its state can be passed to a second store, which then behaves like the store of a
// restarted process.

import { assert } from '../common/errors.js';
import { blockCountOf } from '../platform/blocks.js';
import { assertStoreBlobName } from './blob-files.js';
import { CommitGroup } from './commit-group.js';
import type { FileParts } from './disk.js';
import { entriesOf, NO_FRAME } from './frame.js';
import type { JournalFiles } from './journal-files.js';
import type { PartialBlobContent } from './partial-blob.js';
import { StateView } from './state-view.js';
import type { LogEntry, Store, StoreOperation, StoreSnapshot } from './store.js';
import { type Change, StoreState } from './store-state.js';

/** Unused frames are removed once there are this many. */
const DEAD_FRAMES_MAX = 64;

export interface MemoryState {
  readonly entries: StoreState;
  /** Frames with records or long values, by number. */
  readonly frames: Map<number, Buffer>;
  readonly blobs: Map<string, Uint8Array>;
}

export function createMemoryState(): MemoryState {
  return { entries: new StoreState(), frames: new Map(), blobs: new Map() };
}

export interface MemoryStoreOptions {
  readonly state?: MemoryState;
  /** Runs before each commit takes effect; tests use it to delay commits or make them fail. */
  readonly beforeCommit?: (operations: readonly StoreOperation[]) => Promise<void>;
}

export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  return new MemoryStore(options);
}

class MemoryStore extends StateView implements Store {
  readonly #state: MemoryState;
  readonly #beforeCommit: MemoryStoreOptions['beforeCommit'];
  readonly #dropped = new Set<string>();
  #nextFrame: number;
  #lastCommit: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor({ state = createMemoryState(), beforeCommit }: MemoryStoreOptions) {
    super(state.entries, filesOf(state.frames));
    this.#state = state;
    this.#beforeCommit = beforeCommit;
    this.#nextFrame = Math.max(0, ...state.frames.keys()) + 1;
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

  /** Reads all records at once, because frames are removed when nothing refers to them. */
  override readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    return [...super.readLog(log, afterSequence)];
  }

  async writeBlob(name: string, parts: FileParts): Promise<void> {
    assertStoreBlobName(name);
    const copies: Uint8Array[] = [];
    for await (const part of parts) copies.push(new Uint8Array(part));
    const whole = Buffer.concat(copies);
    this.#state.blobs.set(name, new Uint8Array(whole));
  }

  /** Memory has no blocks that could be fetched later, so all of them are kept. */
  get canPartial(): boolean {
    return true;
  }

  async writePartialBlob(name: string, { byteLength, read }: PartialBlobContent): Promise<void> {
    const parts: Uint8Array[] = [];
    for (let block = 0; block < blockCountOf(byteLength); block++) parts.push(await read(block));
    await this.writeBlob(name, parts);
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
    assertStoreBlobName(to);
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
    return use(Object.assign(reader, { endEntries() {} }));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lastCommit;
  }
}

function filesOf(frames: MemoryState['frames']): Pick<JournalFiles, 'read' | 'retain'> {
  return {
    read({ file, offset, byteLength }) {
      return new Uint8Array(frames.get(file)!.subarray(offset, offset + byteLength));
    },
    retain: () => () => {},
  };
}
