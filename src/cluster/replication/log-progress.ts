// Up to where a node has the logs that it follows or owns, and waiting until it has them up to where a client, or
// another node, has seen them.

import { CATALOGUE } from '../logs/store-keys.js';
import type { NodeLogs } from './node-logs.js';

export class LogProgress {
  readonly #logs: NodeLogs;

  constructor(logs: NodeLogs) {
    this.#logs = logs;
  }

  /**
   * Resolves when everything is applied here that was committed to the log of a collection before the call, or with
   * null to that of the catalogue. Rejects with the reason of the signal.
   */
  async whenCurrent(incarnation: string | null, signal: AbortSignal): Promise<void> {
    const log = this.#logs.find(incarnation);
    if (log !== undefined) await this.#unlessGone(incarnation, log.whenCurrent(signal));
  }

  /** The same for all logs. */
  async whenAllCurrent(signal: AbortSignal): Promise<void> {
    await this.#logs.catalogue.whenCurrent(signal);
    // Those of collections that are new are known by now.
    await Promise.all(this.#logs.ofCollections.map(({ name }) => this.whenCurrent(name, signal)));
  }

  /** The last record of the catalogue's log that this node has. Barriers after it do not count: only followers read them. */
  get cataloguePositions(): Readonly<Record<string, number>> {
    return { [CATALOGUE]: this.#logs.catalogue.position };
  }

  /** The positions of the logs that this node has written to since a time, and of collections. */
  writtenSince(
    startedAtMs: number,
    incarnations: readonly string[],
  ): Readonly<Record<string, number>> {
    return { ...this.#logs.writtenSince(startedAtMs), ...this.positionsOf(incarnations) };
  }

  /** Up to where this node has the logs of collections that it holds. */
  positionsOf(incarnations: readonly string[]): Readonly<Record<string, number>> {
    return this.#logs.positionsOf(incarnations);
  }

  /** Resolves when this node has applied what another one had. A collection that is gone is not waited for. */
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
   * Resolves when this node has applied what a client has seen of a collection or the catalogue, as far as the log has it: the
   * position may be of a log that is gone, or invented. Rejects with the reason of the signal.
   */
  async whenSeen(
    incarnation: string | null,
    positions: Readonly<Record<string, number>>,
    signal: AbortSignal,
  ): Promise<void> {
    const log = this.#logs.find(incarnation);
    const { [incarnation ?? CATALOGUE]: position = 0 } = positions;
    if (log === undefined || log.recordPosition >= position) return;
    // Nobody waits for the position any more when everything has come that the log has.
    const ended = new AbortController();
    const waiting = AbortSignal.any([signal, ended.signal]);
    try {
      const reached = [log.whenApplied(position, waiting), log.whenCurrent(waiting)];
      await this.#unlessGone(incarnation, Promise.race(reached));
    } finally {
      ended.abort();
    }
  }

  /** The same for everything that the client has seen. */
  async whenAllSeen(
    positions: Readonly<Record<string, number>>,
    signal: AbortSignal,
  ): Promise<void> {
    const logs = Object.keys(positions).map((name) => (name === CATALOGUE ? null : name));
    await Promise.all(logs.map((log) => this.whenSeen(log, positions, signal)));
  }

  /** Resolves also when this node gives the log up meanwhile: what is asked of it, it then asks a node that has the log. */
  async #unlessGone(incarnation: string | null, waiting: Promise<void>): Promise<void> {
    const log = this.#logs.find(incarnation);
    try {
      await waiting;
    } catch (error) {
      if (this.#logs.find(incarnation) === log) throw error;
    }
  }
}
