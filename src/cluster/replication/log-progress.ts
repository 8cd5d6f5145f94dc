// The positions up to which a node has applied its logs, and waiting until it has applied what a client or another node
// has seen.

import { CATALOGUE } from '../logs/store-entries.js';
import type { NodeLogs } from './node-logs.js';

export class LogProgress {
  readonly #logs: NodeLogs;

  constructor(logs: NodeLogs) {
    this.#logs = logs;
  }

  /**
   * Resolves when this node has applied everything that was committed before the call to the log of a collection, or for
   * null to that of the catalogue. Rejects with the reason of the signal.
   */
  async whenCurrent(incarnation: string | null, signal: AbortSignal): Promise<void> {
    const log = this.#logs.find(incarnation);
    if (log !== undefined) await this.#unlessGone(incarnation, log.whenCurrent(signal));
  }

  /** Like `whenCurrent`, for all logs. */
  async whenAllCurrent(signal: AbortSignal): Promise<void> {
    await this.#logs.catalogue.whenCurrent(signal);
    // By now the logs of new collections are known.
    await Promise.all(this.#logs.ofCollections.map(({ name }) => this.whenCurrent(name, signal)));
  }

  /** The last stored record of the catalogue's log. Barriers after it do not count, since only followers read them. */
  get cataloguePositions(): Readonly<Record<string, number>> {
    return { [CATALOGUE]: this.#logs.catalogue.position };
  }

  /** The positions of this node's commits since a time, and the applied positions of collections. */
  writtenSince(
    startedAtMs: number,
    incarnations: readonly string[],
  ): Readonly<Record<string, number>> {
    return { ...this.#logs.writtenSince(startedAtMs), ...this.positionsOf(incarnations) };
  }

  /** The applied positions of the collections that this node holds. */
  positionsOf(incarnations: readonly string[]): Readonly<Record<string, number>> {
    return this.#logs.positionsOf(incarnations);
  }

  /** Resolves when this node has applied the logs up to these positions. A deleted collection is not waited for. */
  async whenApplied(
    positions: Readonly<Record<string, number>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { [CATALOGUE]: catalogue = 0, ...collections } = positions;
    await this.#logs.catalogue.whenApplied(catalogue, signal);
    for (const [incarnation, position] of Object.entries(collections)) {
      await this.#logs.find(incarnation)?.whenApplied(position, signal);
    }
  }

  /**
   * Resolves when this node has applied what a client has seen of a collection or the catalogue, or else everything in the
   * log: the position may be invented, or that of another log. Rejects with the reason of the signal.
   */
  async whenSeen(
    incarnation: string | null,
    positions: Readonly<Record<string, number>>,
    signal: AbortSignal,
  ): Promise<void> {
    const log = this.#logs.find(incarnation);
    const { [incarnation ?? CATALOGUE]: position = 0 } = positions;
    if (log === undefined || log.recordPosition >= position) return;
    // Once everything in the log is applied, waiting for the position must end.
    const ended = new AbortController();
    const waiting = AbortSignal.any([signal, ended.signal]);
    try {
      const reached = [log.whenApplied(position, waiting), log.whenCurrent(waiting)];
      await this.#unlessGone(incarnation, Promise.race(reached));
    } finally {
      ended.abort();
    }
  }

  /** Like `whenSeen`, for all positions. */
  async whenAllSeen(
    positions: Readonly<Record<string, number>>,
    signal: AbortSignal,
  ): Promise<void> {
    const logs = Object.keys(positions).map((name) => (name === CATALOGUE ? null : name));
    await Promise.all(logs.map((log) => this.whenSeen(log, positions, signal)));
  }

  /** Resolves also when this node drops the log meanwhile, after which it asks a node that holds the collection. */
  async #unlessGone(incarnation: string | null, waiting: Promise<void>): Promise<void> {
    const log = this.#logs.find(incarnation);
    try {
      await waiting;
    } catch (error) {
      if (this.#logs.find(incarnation) === log) throw error;
    }
  }
}
