// The collections whose rows this node has. It follows their logs, brings in what it is to hold from the newest
// snapshot and the log while it serves, drops what other nodes hold from then on, and forgets what is gone.

import type { Logger } from '../../common/logger.js';
import type { Store } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import { LogArchive } from '../archive/log-archive.js';
import type { Blobs } from '../blobs/blobs.js';
import { appliedLogs, findAppliedPosition } from '../logs/applied-position.js';
import { CATALOGUE } from '../logs/store-keys.js';
import type { Members } from '../members/members.js';
import type { InFlightRequests } from '../replication/in-flight-requests.js';
import type { NodeLogs } from '../replication/node-logs.js';
import type { ReplicatedLog } from '../replication/replicated-log.js';
import { removeState, type StoreLayout } from '../snapshots/log-state.js';
import type { Snapshotter } from '../snapshots/snapshotter.js';
import type { Placements } from './placements.js';

/** Collections that are brought in or removed at the same time. */
const HELD_CHANGES_MAX = 4;

/** The database of the node, as far as it gets and loses collections. */
export interface HoldingDatabase {
  readonly incarnations: readonly string[];
  /** Of collections whose rows it has. */
  readonly heldIncarnations: readonly string[];
  /** How many bytes those have on disk that are loaded, by incarnation. */
  readonly heldBytes: ReadonlyMap<string, number>;
  /** From now on it has the rows of a collection, which its log brings in. */
  takeIn(incarnation: string): Promise<void>;
  /** It does not use what the store has of a collection any more, which is then removed. */
  letGo(incarnation: string): Promise<void>;
}

export interface HeldCollectionsOptions {
  readonly node: string;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly layout: StoreLayout;
  readonly logs: NodeLogs;
  readonly members: Members;
  readonly placements: Placements;
  readonly archiver: Archiver;
  readonly snapshotter: Snapshotter;
  /** Requests for rows, by incarnation. */
  readonly readsUnderWay: InFlightRequests;
  /** Whether another process owns a log and is there. */
  readonly isOwnedElsewhere: (log: ReplicatedLog) => boolean;
  readonly logger: Logger;
  /** Of the node, which ends. */
  readonly signal: AbortSignal;
}

export class HeldCollections {
  readonly #options: HeldCollectionsOptions;
  /** Incarnations that the catalogue does not name yet. */
  readonly #expected = new Set<string>();
  /** Collections that are brought in or removed. */
  readonly #changing = new Map<string, Promise<void>>();

  constructor(options: HeldCollectionsOptions) {
    this.#options = options;
  }

  /** A collection is made that the catalogue does not name yet. Its log stays. */
  expect(incarnation: string): void {
    this.#expected.add(incarnation);
  }

  /** The same collection is not made, or is named no more. */
  expectNoMore(incarnation: string): void {
    this.#expected.delete(incarnation);
  }

  isExpected(incarnation: string): boolean {
    return this.#expected.has(incarnation);
  }

  /** Brings the store up to date, which has these collections, before a database is opened on it. */
  async catchUp(incarnations: readonly string[]): Promise<void> {
    const { node, store, layout, logs, placements, signal } = this.#options;
    await this.#removeAllBut(incarnations);
    for (const incarnation of incarnations) {
      if (!placements.wants(node, incarnation)) {
        await this.#leaveOut(incarnation);
        continue;
      }
      const { absence } = layout.collection(incarnation);
      if (store.get(absence) !== undefined) await store.commit([{ kind: 'remove', key: absence }]);
      await logs.open(incarnation).catchUp(signal);
    }
  }

  /** Of collections that have gone while this node was away. */
  async #removeAllBut(incarnations: readonly string[]): Promise<void> {
    const { store, layout } = this.#options;
    const kept = new Set([CATALOGUE, ...incarnations]);
    for (const log of appliedLogs(store)) {
      if (!kept.has(log)) await removeState(store, layout, log);
    }
  }

  /** Of a collection that this node does not hold any more, or that it has never held. */
  async #leaveOut(incarnation: string): Promise<void> {
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

  /** Follows the logs of collections that are new, and forgets those of collections that are gone. */
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
      // One that could not be brought in yet is archived here later.
      const wasArchived = isGone && (await archiver.stop(incarnation));
      await this.forget(incarnation);
      // The node that removed it may have been faster.
      if (wasArchived) await new LogArchive(incarnation, { blobs, logger }).removeAll();
    }
  }

  /** The log of a collection is gone, or other nodes alone have it. */
  async forget(incarnation: string): Promise<void> {
    const { logs, snapshotter } = this.#options;
    await logs.remove(incarnation)?.forget();
    await snapshotter.forget(incarnation);
  }

  /** Brings in what this node is to have, and removes what only others hold. Called again and again. */
  run(database: HoldingDatabase): void {
    const { node, members, placements, logger, signal } = this.#options;
    if (signal.aborted) return;
    const held = new Set(database.heldIncarnations);
    for (const incarnation of database.incarnations) {
      const isWanted = placements.wants(node, incarnation);
      const moveId = this.#moveHere(incarnation);
      const isAnnounced = moveId === null || members.self.joined.includes(moveId);
      const isAsItIsToBe = isWanted === held.has(incarnation) && isAnnounced;
      if (isAsItIsToBe || this.#changing.has(incarnation)) continue;
      if (this.#changing.size >= HELD_CHANGES_MAX) return;
      const change = isWanted
        ? this.#bringIn(incarnation, database)
        : this.#letGo(incarnation, database);
      const changing = change
        .catch((err: unknown) => {
          if (signal.aborted) return;
          const text = 'a collection could not be brought in or removed; it is tried again';
          logger.warn({ err, log: incarnation }, text);
        })
        .then(() => {
          this.#changing.delete(incarnation);
        });
      this.#changing.set(incarnation, changing);
    }
  }

  /** Resolves when nothing is brought in or removed. */
  async settled(): Promise<void> {
    await Promise.all(this.#changing.values());
  }

  /** The move of a collection to this node; null for none. */
  #moveHere(incarnation: string): string | null {
    const placement = this.#options.placements.of(incarnation);
    return placement?.joining === this.#options.node ? placement.moveId : null;
  }

  /** Gets a collection from its newest snapshot and its log, while the node serves. */
  async #bringIn(incarnation: string, database: HoldingDatabase): Promise<void> {
    const { logs, members, placements, signal } = this.#options;
    if (!database.heldIncarnations.includes(incarnation)) {
      // What is left of it if the node stopped while it removed it, its place in the log first.
      await removeState(this.#options.store, this.#options.layout, incarnation);
      // The collection commits there, so it is known before the collection is loaded.
      const log = logs.open(incarnation);
      await database.takeIn(incarnation);
      if (!database.heldIncarnations.includes(incarnation)) {
        // It was deleted meanwhile.
        await this.forget(incarnation);
        return;
      }
      await log.catchUp(signal);
    }
    const log = logs.open(incarnation);
    log.follow();
    await log.whenCurrent(signal);
    // The one that is under way now, which may not be the one that it began with: it has everything in any case.
    const moveId = this.#moveHere(incarnation);
    if (moveId === null || !database.heldIncarnations.includes(incarnation)) return;
    const current = new Set([...placements.entries].map(([, placement]) => placement.moveId));
    const others = members.self.joined.filter((id) => current.has(id));
    members.change({ joined: [...others, moveId] });
  }

  /** When another node writes, and what was asked of this one is answered. */
  async #letGo(incarnation: string, database: HoldingDatabase): Promise<void> {
    const { node, store, layout, logs, placements, readsUnderWay } = this.#options;
    const log = logs.find(incarnation);
    const isFree = () => log === undefined || this.#options.isOwnedElsewhere(log);
    if (!isFree()) return;
    // New ones go to other nodes. It is looked at again a moment later.
    const isQuiet = await readsUnderWay.whenNone([incarnation], 0);
    if (!isQuiet || placements.wants(node, incarnation) || !isFree()) return;
    await logs.remove(incarnation)?.close();
    await database.letGo(incarnation);
    await removeState(store, layout, incarnation);
  }
}
