// Which format of records a node writes: the newest that all nodes can read that were heard of lately. Nodes
// announce what they read. One that was away for longer may find records that it cannot read, and says so.

import { FIRST_FORMAT, type FormatRange } from '../logs/record-format.js';

/** Nodes that are updated one by one are away for minutes; a machine that is repaired may come back with the old version. */
const REMEMBER_MS = 60 * 60 * 1_000;

/** What nodes announce that do not know formats yet. */
const FIRST_FORMAT_ONLY: FormatRange = { oldest: FIRST_FORMAT, newest: FIRST_FORMAT };

export class FormatAgreement {
  readonly #own: FormatRange;
  readonly #listenedMs: () => number;
  /** By the names of other nodes, so that a new version replaces the one before. */
  readonly #others = new Map<string, { readonly newest: number; readonly atMs: number }>();

  /** `listenedMs`: for how long this process has listened to announcements. */
  constructor(own: FormatRange, listenedMs: () => number) {
    this.#own = own;
    this.#listenedMs = listenedMs;
  }

  note({ node, formats }: { readonly node: string; readonly formats: FormatRange }): void {
    this.#others.set(node, { newest: formats.newest, atMs: this.#listenedMs() });
  }

  get written(): number {
    let format = this.#own.newest;
    const oldestMs = this.#listenedMs() - REMEMBER_MS;
    for (const [node, { newest, atMs }] of this.#others) {
      if (atMs < oldestMs) this.#others.delete(node);
      else format = Math.min(format, newest);
    }
    return Math.max(format, this.#own.oldest);
  }
}

/** Of an announcement, which is that of any version. */
export function readFormats(announced: unknown): FormatRange {
  const { oldest, newest } = (announced ?? {}) as Partial<Record<keyof FormatRange, unknown>>;
  const isRange = Number.isInteger(oldest) && Number.isInteger(newest);
  return isRange ? { oldest: Number(oldest), newest: Number(newest) } : FIRST_FORMAT_ONLY;
}
