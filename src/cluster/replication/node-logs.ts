// The logs of a node: that of the catalogue, and those of the collections that it holds, creates or brings in. Each is
// opened once, and read through its archive where it is damaged. What the node commits is remembered for a while, for
// the replies to forwarded writes.

import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import { LogArchive } from '../archive/log-archive.js';
import { RepairingLog } from '../archive/repairing-log.js';
import type { Blobs } from '../blobs/blobs.js';
import { ChainedLog } from '../logs/chained-log.js';
import { CATALOGUE } from '../logs/store-keys.js';
import type { SharedService } from '../service/shared-service.js';
import { namedAfter, type StoreLayout } from '../snapshots/log-state.js';
import { ReplicatedLog } from './replicated-log.js';

/** Commits that are remembered for the replies to forwarded writes: more than are made during one. */
const WRITTEN_MAX = 1_000;

export interface NodeLogsOptions {
  readonly service: SharedService;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly layout: StoreLayout;
  /** Told what this node publishes. */
  readonly archiver: Archiver;
  /** The process, as it appears in records of epochs. */
  readonly owner: string;
  /** What follows is as in ReplicatedLogOptions, with the name of the log. */
  readonly apply: (
    name: string,
    operations: readonly StoreOperation[],
  ) => Promise<{ readonly stored: Promise<void> }>;
  readonly load: (name: string, signal: AbortSignal) => Promise<void>;
  readonly onOwner: (name: string, owner: string) => void;
  readonly onCommitted: (name: string, operations: readonly StoreOperation[]) => void;
  readonly onStoreFailed: () => void;
  readonly onBytes: (name: string, byteCount: number) => void;
  readonly logger: Logger;
}

export class NodeLogs {
  readonly catalogue: ReplicatedLog;
  readonly #options: NodeLogsOptions;
  /** By incarnation. */
  readonly #collections = new Map<string, ReplicatedLog>();
  /** The newest commits of this node, oldest first. */
  readonly #written: { readonly name: string; readonly position: number; readonly atMs: number }[] =
    [];
  #repairedRecordCount = 0;

  constructor(options: NodeLogsOptions) {
    this.#options = options;
    this.catalogue = this.#make(CATALOGUE);
  }

  get all(): ReplicatedLog[] {
    return [this.catalogue, ...this.#collections.values()];
  }

  /** Those that this node owns. */
  get owned(): ReplicatedLog[] {
    return this.all.filter(({ isWritable }) => isWritable);
  }

  get ofCollections(): readonly ReplicatedLog[] {
    return [...this.#collections.values()];
  }

  /** Null stands for the log of the catalogue. Undefined for a collection whose log is not open. */
  find(incarnation: string | null): ReplicatedLog | undefined {
    return incarnation === null ? this.catalogue : this.#collections.get(incarnation);
  }

  /** The log of a collection, which is opened if it is not. */
  open(incarnation: string): ReplicatedLog {
    const known = this.#collections.get(incarnation);
    if (known !== undefined) return known;
    const log = this.#make(incarnation);
    this.#collections.set(incarnation, log);
    return log;
  }

  /** From now on the log of a collection is another one, if it is opened again. The caller closes this one. */
  remove(incarnation: string): ReplicatedLog | undefined {
    const log = this.#collections.get(incarnation);
    this.#collections.delete(incarnation);
    return log;
  }

  /** The positions of the logs that this node has written to since a time. */
  writtenSince(startedAtMs: number): Readonly<Record<string, number>> {
    const written = this.#written.filter(({ atMs }) => atMs >= startedAtMs);
    return Object.fromEntries(written.map(({ name, position }) => [name, position]));
  }

  /** Up to where this node has the logs of collections, as far as these are open. */
  positionsOf(incarnations: readonly string[]): Readonly<Record<string, number>> {
    const logs = incarnations.flatMap((incarnation) => this.#collections.get(incarnation) ?? []);
    return Object.fromEntries(logs.map((log) => [log.name, log.recordPosition]));
  }

  /** Records that logs did not have, and that this node has read from the archive. */
  get repairedRecordCount(): number {
    return this.#repairedRecordCount;
  }

  #make(name: string): ReplicatedLog {
    const { service, store, blobs, layout, archiver, owner, logger } = this.#options;
    const { apply, load, onOwner, onCommitted, onStoreFailed, onBytes } = this.#options;
    return new ReplicatedLog({
      log: new RepairingLog({
        log: new ChainedLog(service.openStream(name), {
          onPublished: (messages, position) => archiver.addPublished(name, messages, position),
        }),
        archive: new LogArchive(name, { blobs, logger }),
        logger,
        onRepaired: (recordCount) => {
          this.#repairedRecordCount += recordCount;
        },
      }),
      name,
      store,
      // The catalogue is read from the store by those who change it.
      mayRunAhead: name !== CATALOGUE,
      owner,
      apply: (operations) => apply(name, operations),
      load: (signal) => load(name, signal),
      prepare: (operations) => namedAfter(layout, name, operations),
      onOwner: (process) => onOwner(name, process),
      onStoreFailed,
      onBytes: (byteCount) => onBytes(name, byteCount),
      onCommitted: (position, operations) => {
        onCommitted(name, operations);
        this.#written.push({ name, position, atMs: performance.now() });
        if (this.#written.length > WRITTEN_MAX) this.#written.shift();
      },
      logger,
    });
  }
}
