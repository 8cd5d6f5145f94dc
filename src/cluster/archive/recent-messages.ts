// The messages that this node has published to its logs and not archived yet. Reading them back for the archive would
// cost a tenth of the processor time of a node that loads many rows, and some of that of the log servers.

import type { OutgoingMessage, StreamMessage } from '../logs/message-stream.js';

/** The bound over all logs. Older messages are read back for the archive. */
const BYTES_MAX = 64 * 1024 * 1024;

interface Run {
  /** Messages with consecutive positions. */
  messages: StreamMessage[];
  byteCount: number;
}

export class RecentMessages {
  readonly #bytesMax: number;
  readonly #runs = new Map<string, Run>();
  #byteCount = 0;

  constructor(bytesMax = BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Adds consecutive messages of a log; `position` is that of the last one. */
  add(log: string, messages: readonly OutgoingMessage[], position: number): void {
    const first = position - messages.length + 1;
    const known = this.#runs.get(log);
    // Other processes have appended messages in between.
    if (known !== undefined && known.messages.at(-1)?.position !== first - 1) this.forget(log);
    const run = this.#runs.get(log) ?? { messages: [], byteCount: 0 };
    this.#runs.set(log, run);
    for (const [i, { channel, bytes }] of messages.entries()) {
      run.messages.push({ channel, bytes, position: first + i });
      run.byteCount += bytes.length;
      this.#byteCount += bytes.length;
    }
    this.#forgetOldest();
  }

  /** Forgets messages until the rest is within the bound, beginning with the logs that were added first. */
  #forgetOldest(): void {
    for (const [log, { messages }] of this.#runs) {
      let excess = this.#byteCount - this.#bytesMax;
      if (excess <= 0) return;
      const kept = messages.findIndex(({ bytes }) => {
        const isOld = excess > 0;
        excess -= bytes.length;
        return !isOld;
      });
      this.forget(log, messages.at(kept < 0 ? -1 : kept - 1)!.position);
    }
  }

  /** The messages of a log after a position up to another one; null unless all of them are remembered. */
  between(log: string, after: number, end: number): readonly StreamMessage[] | null {
    const messages = this.#runs.get(log)?.messages ?? [];
    const first = messages[0]?.position ?? 0;
    const last = messages.at(-1)?.position ?? 0;
    if (first === 0 || first > after + 1 || last < end) return null;
    return messages.slice(after + 1 - first, end + 1 - first);
  }

  /** Forgets the messages of a log up to a position, by default all of them. */
  forget(log: string, through = Number.POSITIVE_INFINITY): void {
    const run = this.#runs.get(log);
    if (run === undefined) return;
    const kept = run.messages.filter(({ position }) => position > through);
    const byteCount = kept.reduce((sum, { bytes }) => sum + bytes.length, 0);
    this.#byteCount -= run.byteCount - byteCount;
    if (kept.length === 0) this.#runs.delete(log);
    else this.#runs.set(log, { messages: kept, byteCount });
  }
}
