// The collections that this node holds. It follows their logs, loads further ones from the newest snapshot and the log
// while it serves, drops those that it should no longer hold, and forgets deleted ones.

import type { Changes } from '../../common/changes.js';
import type { Logger } from '../../common/logger.js';
import type { Store } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import { LogArchive } from '../archive/log-archive.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { appliedLogs, findAppliedPosition } from '../logs/applied-position.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { Members } from '../members/members.js';
import { isOwnedElsewhere } from '../replication/elections.js';
import type { InFlightRequests } from '../replication/in-flight-requests.js';
import type { NodeLogs } from '../replication/node-logs.js';
import type { FileAdoption } from '../snapshots/file-adoption.js';
import { removeState, type StoreLayout } from '../snapshots/log-state.js';
import type { Snapshotter } from '../snapshots/snapshotter.js';
import type { Placements } from './placements.js';

/** Collections that are loaded or dropped at the same time. */
const CHANGES_MAX = 4;

/** The methods of the node's database for adding and dropping collections. */
export interface HoldingDatabase {
  readonly incarnations: readonly string[];
  /** The collections whose rows it holds. */
  readonly heldIncarnations: readonly string[];
  /** The bytes on disk of the loaded collections, by incarnation. */
  readonly heldBytes: ReadonlyMap<string, number>;
  /** Begins to hold the rows of a collection, which come from its log. */
  startHolding(incarnation: string): Promise<void>;
  /** Stops using the rows of a collection in the store, which the caller then removes. */
  stopHolding(incarnation: string): Promise<void>;
}

export interface HeldCollectionsOptions {
  readonly node: string;
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  readonly logs: NodeLogs;
  readonly members: Members;
  readonly placements: Placements;
  readonly archiver: Archiver;
  readonly snapshotter: Snapshotter;
  readonly adoption: FileAdoption;
  /** Requests for rows, by incarnation. */
  readonly reads: InFlightRequests;
  readonly applier: {
    /** Another number after each change of the catalogue. */
    readonly catalogueVersion: number;
  };
  /** Changes of the catalogue, among others. */
  readonly changes: Changes;
  readonly logger: Logger;
  /** Aborted when the node closes. */
  readonly signal: AbortSignal;
}

export class HeldCollections {
  readonly #options: HeldCollectionsOptions;
  /** New collections that the catalogue does not name yet. */
  readonly #expected = new Set<string>();
  /** Collections that are being loaded or dropped. */
  readonly #changing = new Map<string, Promise<void>>();

  constructor(options: HeldCollectionsOptions) {
    this.#options = options;
  }

  /** Keeps the log of a new collection that the catalogue does not name yet. */
  expect(incarnation: string): void {
    this.#expected.add(incarnation);
  }

  /** Undoes `expect` for a collection that was not created, or has been deleted. */
  unexpect(incarnation: string): void {
    this.#expected.delete(incarnation);
  }

  isExpected(incarnation: string): boolean {
    return this.#expected.has(incarnation);
  }

  /**
   * Brings a store up to date, before a database is opened on it. `incarnationsIn` lists the collections in the store,
   * which change while the log of the catalogue is followed.
   */
  async catchUp(incarnationsIn: () => readonly string[]): Promise<void> {
    const { catalogue } = this.#options.logs;
    await this.#removeAllBut(incarnationsIn());
    const listed = new ListedCollections(incarnationsIn, this.#options.applier);
    const done = new Set<string>();
    // Those that are added at the end, while the log of the catalogue is still followed, need another turn.
    while ([...listed.current].some((each) => !done.has(each))) {
      await catalogue.followDuring(() => this.#catchUpListed(listed, done));
    }
  }

  async #catchUpListed(listed: ListedCollections, done: Set<string>): Promise<void> {
    const { node, placements } = this.#options;
    for (const incarnation of listed.current) {
      if (done.has(incarnation)) continue;
      done.add(incarnation);
      if (placements.isAssigned(node, incarnation)) {
        await this.#catchUpUnlessDeleted(incarnation, listed);
      } else {
        await this.#markAbsent(incarnation);
      }
    }
  }

  /** The log of a collection never answers if that is deleted meanwhile, which the log of the catalogue tells. */
  async #catchUpUnlessDeleted(incarnation: string, listed: ListedCollections): Promise<void> {
    const { store, layout, logs, changes, signal } = this.#options;
    const { absence } = layout.collection(incarnation);
    if (store.get(absence) !== undefined) await store.commit([{ kind: 'remove', key: absence }]);
    const ended = new AbortController();
    const isDeleted = () => (listed.current.has(incarnation) ? null : true);
    const deleted = changes.until(isDeleted, AbortSignal.any([ended.signal, signal]));
    const caughtUp = logs.open(incarnation).catchUp(signal);
    try {
      const wasDeleted = await Promise.race([deleted, caughtUp.then(() => false)]);
      if (!wasDeleted) return;
      await this.forget(incarnation);
      await removeState(store, layout, incarnation);
    } finally {
      ended.abort();
      for (const each of [deleted, caughtUp]) each.catch(() => {});
    }
  }

  /** Removes collections that were deleted while this node was away. */
  async #removeAllBut(incarnations: readonly string[]): Promise<void> {
    const { store, layout } = this.#options;
    const kept = new Set([CATALOGUE, ...incarnations]);
    for (const log of appliedLogs(store)) {
      if (!kept.has(log)) await removeState(store, layout, log);
    }
  }

  /** Marks a collection as not held by this node, and removes its rows. */
  async #markAbsent(incarnation: string): Promise<void> {
    const { store, layout } = this.#options;
    await this.#removeStored(incarnation);
    const { absence } = layout.collection(incarnation);
    if (store.get(absence) !== undefined) return;
    await store.commit([{ kind: 'put', key: absence, value: new Uint8Array() }]);
  }

  async #removeStored(incarnation: string): Promise<void> {
    const { store, layout } = this.#options;
    if (findAppliedPosition(store, incarnation) !== undefined)
      await removeState(store, layout, incarnation);
  }

  /** Follows the logs of new collections, and forgets those of deleted ones. */
  async sync(database: HoldingDatabase): Promise<void> {
    const { logs, archiver, blobs, logger } = this.#options;
    const held = new Set(database.heldIncarnations);
    const known = new Set(database.incarnations);
    for (const incarnation of known) {
      if (!this.#changing.has(incarnation)) this.#expected.delete(incarnation);
    }
    for (const incarnation of held) {
      if (!this.#changing.has(incarnation)) logs.open(incarnation).follow();
    }
    for (const { name: incarnation } of logs.ofCollections) {
      if (held.has(incarnation) || this.#expected.has(incarnation)) continue;
      const isGone = !known.has(incarnation);
      if (!isGone && this.#changing.has(incarnation)) continue;
      // A collection that could not be loaded yet is dropped here later.
      const wasArchived = isGone && (await archiver.stop(incarnation));
      await this.forget(incarnation);
      // The node that deleted it may have removed the archive before the last upload.
      if (wasArchived) await new LogArchive(incarnation, { blobs, logger }).removeAll();
    }
  }

  /** Forgets the log of a collection that is deleted, or that only other nodes hold. */
  async forget(incarnation: string): Promise<void> {
    const { adoption, logs, snapshotter } = this.#options;
    await logs.remove(incarnation)?.forget();
    await snapshotter.forget(incarnation);
    await adoption.forget(incarnation);
  }

  /** Loads the collections that this node should hold, and drops the others. Called periodically. */
  run(database: HoldingDatabase): void {
    const { node, members, placements, logger, signal } = this.#options;
    if (signal.aborted) return;
    const held = new Set(database.heldIncarnations);
    for (const incarnation of database.incarnations) {
      const isAssigned = placements.isAssigned(node, incarnation);
      const moveId = this.#moveHere(incarnation);
      const isAnnounced = moveId === null || members.self.joined.includes(moveId);
      const isDone = isAssigned === held.has(incarnation) && isAnnounced;
      if (isDone || this.#changing.has(incarnation)) continue;
      if (this.#changing.size >= CHANGES_MAX) return;
      const change = isAssigned
        ? this.#load(incarnation, database)
        : this.#drop(incarnation, database);
      const changing = change
        .catch((err: unknown) => {
          if (signal.aborted) return;
          const text = 'a collection could not be loaded or dropped; this will be retried';
          logger.warn({ err, log: incarnation }, text);
        })
        .then(() => {
          this.#changing.delete(incarnation);
        });
      this.#changing.set(incarnation, changing);
    }
  }

  /** Resolves when no collection is being loaded or dropped. */
  async settled(): Promise<void> {
    await Promise.all(this.#changing.values());
  }

  /** The id of the move of a collection to this node; null for none. */
  #moveHere(incarnation: string): string | null {
    const placement = this.#options.placements.of(incarnation);
    return placement?.joining === this.#options.node ? placement.moveId : null;
  }

  /** Loads a collection from its newest snapshot and its log, while the node serves. */
  async #load(incarnation: string, database: HoldingDatabase): Promise<void> {
    const { logs, members, placements, signal } = this.#options;
    if (!database.heldIncarnations.includes(incarnation)) {
      // Removes the rest of a removal that a stop of the node has interrupted.
      await removeState(this.#options.store, this.#options.layout, incarnation);
      // The log is opened first, since the collection commits to it.
      const log = logs.open(incarnation);
      await database.startHolding(incarnation);
      if (!database.heldIncarnations.includes(incarnation)) {
        // The collection was deleted meanwhile.
        await this.forget(incarnation);
        return;
      }
      await log.catchUp(signal);
    }
    const log = logs.open(incarnation);
    log.follow();
    await log.whenCurrent(signal);
    // The current move, which may be another one than at the beginning; this node has everything in any case.
    const moveId = this.#moveHere(incarnation);
    if (moveId === null || !database.heldIncarnations.includes(incarnation)) return;
    const current = new Set([...placements.entries].map(([, placement]) => placement.moveId));
    const others = members.self.joined.filter((id) => current.has(id));
    members.change({ joined: [...others, moveId] });
  }

  /** Drops a collection, unless this node owns its log or is answering requests about it. */
  async #drop(incarnation: string, database: HoldingDatabase): Promise<void> {
    const { node, store, layout, logs, placements, reads, members } = this.#options;
    const log = logs.find(incarnation);
    const isFree = () => log === undefined || isOwnedElsewhere(log, members);
    if (!isFree()) return;
    // New requests go to other nodes, and `run` tries again a moment later.
    const isQuiet = await reads.whenNone([incarnation], 0);
    if (!isQuiet || placements.isAssigned(node, incarnation) || !isFree()) return;
    await logs.remove(incarnation)?.close();
    await database.stopHolding(incarnation);
    await removeState(store, layout, incarnation);
  }
}

/** The collections in a store, which are listed again only after a change of the catalogue. */
class ListedCollections {
  readonly #incarnationsIn: () => readonly string[];
  readonly #applier: HeldCollectionsOptions['applier'];
  #version: number | null = null;
  #current: ReadonlySet<string> = new Set();

  constructor(incarnationsIn: () => readonly string[], applier: HeldCollectionsOptions['applier']) {
    this.#incarnationsIn = incarnationsIn;
    this.#applier = applier;
  }

  get current(): ReadonlySet<string> {
    const { catalogueVersion } = this.#applier;
    if (this.#version !== catalogueVersion) {
      this.#version = catalogueVersion;
      this.#current = new Set(this.#incarnationsIn());
    }
    return this.#current;
  }
}
