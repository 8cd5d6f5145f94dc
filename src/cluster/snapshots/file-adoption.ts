// Lets the database use the files in the newest snapshot of each log, one log at a time: the files that the owner of the log
// wrote, in place of those that the node would write itself, or a part of a file in place of all of it.

import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { PLACEMENTS, SNAPSHOTS } from '../logs/store-entries.js';
import type { FileFetcher } from './file-fetcher.js';
import { SnapshotFiles } from './snapshot-files.js';
import { readSnapshotRecord } from './snapshot-record.js';

/** How many calls of `run` it takes until files are tried again that could not be used: 10 s. */
const RETRY_RUNS = 100;

/** Files in a snapshot, as the database uses them. */
interface OfferedFiles {
  /** The description of the files by the database of the owner (`StoreLayout.filesOf`). */
  readonly description: object;
  /** See `digestOfBlocks`; in the order of the description. */
  readonly digests: readonly string[];
  /** Whether this node keeps all of the file at a place. */
  readonly isWhole: (place: number) => boolean;
  /** Writes the file at a place to the store of this node, under a name. Rejects with `data_corrupt`. */
  readonly fetch: (place: number, name: string) => Promise<void>;
}

export interface AdoptingDatabase {
  /** Resolves with false if the files cannot be used yet. */
  adoptFiles(incarnation: string, files: OfferedFiles): Promise<boolean>;
}

export interface FileAdoptionOptions {
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly fetcher: FileFetcher;
  /** Null until it is open. */
  readonly database: () => AdoptingDatabase | null;
  /** Whether this node holds the collection of the log. */
  readonly isHeld: (log: string) => boolean;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

export class FileAdoption {
  readonly #options: FileAdoptionOptions;
  /** The logs with a snapshot that was not looked at, with the number of the call of `run` that may try it. */
  readonly #due = new Map<string, number>();
  #runCount = 0;
  #running: { readonly log: string; readonly ended: Promise<void> } | null = null;

  constructor(options: FileAdoptionOptions) {
    this.#options = options;
  }

  /** Called with the logs that the node holds from its start on. */
  begin(logs: readonly string[]): void {
    for (const log of logs) this.#due.set(log, 0);
  }

  /** Called with what was committed to a log: a snapshot of it, or placements, by which other nodes are to keep files. */
  follow(log: string, operations: readonly StoreOperation[]): void {
    for (const operation of operations) {
      if (operation.kind !== 'put') continue;
      const [kind, incarnation] = operation.key;
      if (kind === SNAPSHOTS[0]) this.#due.set(log, 0);
      else if (kind === PLACEMENTS[0]) this.#due.set(incarnation!, 0);
    }
  }

  /** Called periodically. */
  run(): void {
    const { database, isHeld, signal } = this.#options;
    this.#runCount++;
    if (this.#running !== null || database() === null || signal.aborted) return;
    for (const [log, firstRun] of this.#due) {
      if (firstRun > this.#runCount) continue;
      this.#due.delete(log);
      if (!isHeld(log)) continue;
      this.#start(log);
      return;
    }
  }

  #start(log: string): void {
    const { isHeld, logger, signal } = this.#options;
    const retry = () => {
      if (!this.#due.has(log)) this.#due.set(log, this.#runCount + RETRY_RUNS);
    };
    const ended = this.#adopt(log)
      .then((isDone) => {
        if (!isDone) retry();
      })
      .catch((err: unknown) => {
        if (signal.aborted || !isHeld(log)) return;
        retry();
        const text = 'the files of the owner of a log could not be used; this will be retried';
        logger.warn({ err, log }, text);
      })
      .finally(() => {
        this.#running = null;
      });
    this.#running = { log, ended };
  }

  async #adopt(log: string): Promise<boolean> {
    const { store, blobs, fetcher, database, signal } = this.#options;
    const name = readSnapshotRecord(store, log)?.name;
    if (name === undefined) return true;
    const files = new SnapshotFiles(blobs, log);
    const index = await files.read(name);
    if (index.description === null) return true;
    const isWhole = (place: number) => fetcher.isWhole(log, index.files[place]!);
    const fetch = (place: number, target: string) =>
      fetcher.fetch(log, index.files[place]!, { name: target, parts: null, signal });
    const digests = index.files.map(({ digest }) => digest);
    const { description } = index;
    return (await database()?.adoptFiles(log, { description, digests, isWhole, fetch })) ?? true;
  }

  /** Resolves when nothing is being fetched. */
  async settled(): Promise<void> {
    await this.#running?.ended;
  }

  /** Called when the log is about to be closed or loaded. Resolves when none of its files is being fetched. */
  async forget(log: string): Promise<void> {
    this.#due.delete(log);
    if (this.#running?.log === log) await this.#running.ended;
  }
}
