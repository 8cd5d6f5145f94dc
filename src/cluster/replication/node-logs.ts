// The logs of a node: that of the catalogue, and those of the collections that it holds, creates or loads. Each is opened
// once, and read through its archive where it is damaged. Recent commits of the node are remembered for the replies to
// forwarded writes.

import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import { LogArchive } from '../archive/log-archive.js';
import { RepairingLog } from '../archive/repairing-log.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { ChainedLog } from '../logs/chained-log.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { SharedService } from '../service/shared-service.js';
import { nameReplyLogs, type StoreLayout } from '../snapshots/log-state.js';
import { ReplicatedLog } from './replicated-log.js';

/** Remembered commits: more than are made during one forwarded write. */
const COMMITS_MAX = 1_000;

export interface NodeLogsOptions {
  readonly service: SharedService;
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  /** Remembers what this node publishes. */
  readonly archiver: Archiver;
  /** The process, as it appears in records of epochs. */
  readonly owner: string;
  /** The following members are those of ReplicatedLogOptions, with the name of the log. */
  readonly apply: (
    name: string,
    operations: readonly StoreOperation[],
  ) => Promise<{ readonly stored: Promise<void> }>;
  readonly load: (name: string, signal: AbortSignal) => Promise<void>;
  readonly onOwner: (name: string, owner: string) => void;
  readonly onRole: () => void;
  readonly onCommitted: (name: string, operations: readonly StoreOperation[]) => void;
  readonly onStoreFailed: (error: Error) => void;
  readonly onBytes: (name: string, byteCount: number) => void;
  readonly logger: Logger;
}

export class NodeLogs {
  readonly catalogue: ReplicatedLog;
  readonly #options: NodeLogsOptions;
  /** By incarnation. */
  readonly #collections = new Map<string, ReplicatedLog>();
  /** The newest commits of this node, oldest first. */
  readonly #commits: { readonly name: string; readonly position: number; readonly atMs: number }[] =
    [];
  #repairedRecordCount = 0;

  constructor(options: NodeLogsOptions) {
    this.#options = options;
    this.catalogue = this.#make(CATALOGUE);
  }

  get all(): ReplicatedLog[] {
    return [this.catalogue, ...this.#collections.values()];
  }

  /** The logs that this node owns. */
  get owned(): ReplicatedLog[] {
    return this.all.filter(({ isWritable }) => isWritable);
  }

  get ofCollections(): readonly ReplicatedLog[] {
    return [...this.#collections.values()];
  }

  /** `incarnation`: null for the catalogue. Undefined for a collection whose log is not open. */
  find(incarnation: string | null): ReplicatedLog | undefined {
    return incarnation === null ? this.catalogue : this.#collections.get(incarnation);
  }

  /** The log of a collection, opened if it is not yet. */
  open(incarnation: string): ReplicatedLog {
    const known = this.#collections.get(incarnation);
    if (known !== undefined) return known;
    const log = this.#make(incarnation);
    this.#collections.set(incarnation, log);
    return log;
  }

  /** Forgets the log of a collection, which the caller closes. */
  remove(incarnation: string): ReplicatedLog | undefined {
    const log = this.#collections.get(incarnation);
    this.#collections.delete(incarnation);
    return log;
  }

  /** The last positions of this node's commits since a time (`performance.now`), by log. */
  writtenSince(startedAtMs: number): Readonly<Record<string, number>> {
    const commits = this.#commits.filter(({ atMs }) => atMs >= startedAtMs);
    return Object.fromEntries(commits.map(({ name, position }) => [name, position]));
  }

  /** The applied positions of those of the collections whose logs are open. */
  positionsOf(incarnations: readonly string[]): Readonly<Record<string, number>> {
    const logs = incarnations.flatMap((incarnation) => this.#collections.get(incarnation) ?? []);
    return Object.fromEntries(logs.map((log) => [log.name, log.recordPosition]));
  }

  /** Records missing in logs that this node has read from the archive. */
  get repairedRecordCount(): number {
    return this.#repairedRecordCount;
  }

  #make(name: string): ReplicatedLog {
    const { service, store, blobs, layout, archiver, owner, logger } = this.#options;
    const { apply, load, onOwner, onRole, onCommitted, onStoreFailed, onBytes } = this.#options;
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
      // Changes of the catalogue read it from the store.
      mayRunAhead: name !== CATALOGUE,
      owner,
      apply: (operations) => apply(name, operations),
      load: (signal) => load(name, signal),
      prepare: (operations) => nameReplyLogs(layout, name, operations),
      onOwner: (process) => onOwner(name, process),
      onRole,
      onStoreFailed,
      onBytes: (byteCount) => onBytes(name, byteCount),
      onCommitted: (position, operations) => {
        onCommitted(name, operations);
        this.#commits.push({ name, position, atMs: performance.now() });
        if (this.#commits.length > COMMITS_MAX) this.#commits.shift();
      },
      logger,
    });
  }
}
