// The log positions of a cluster that this client has seen, from the Sagitta-Session header of replies. Every request sends
// them back, so that whichever node answers has at least as much data. A server outside a cluster sends no such header.

const SESSION = 'sagitta-session';
/** Enough for the catalogue and the collections used most recently; the server accepts 64. */
const LOGS_MAX = 32;
const ITEM = /^([^:]+):(\d{1,15})$/;

export class ClusterSession {
  /** Positions by log, least recently seen first. */
  readonly #positions = new Map<string, number>();

  /** The headers to send with the next request. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#positions.size === 0) return {};
    const items = [...this.#positions].map(([log, position]) => `${log}:${position}`);
    return { [SESSION]: items.join(',') };
  }

  /** Records the positions in the headers of a reply. */
  record(headers: Headers): void {
    const text = headers.get(SESSION);
    if (text === null) return;
    for (const item of text.split(',')) {
      const [, log, position] = ITEM.exec(item.trim()) ?? [];
      if (log === undefined) continue;
      const known = this.#positions.get(log) ?? 0;
      this.#positions.delete(log);
      this.#positions.set(log, Math.max(Number(position), known));
    }
    for (const log of this.#positions.keys()) {
      if (this.#positions.size <= LOGS_MAX) return;
      this.#positions.delete(log);
    }
  }
}
