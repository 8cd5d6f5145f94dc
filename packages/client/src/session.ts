// What a client has seen of a cluster: up to where the logs were that replies tell of, in the header Sagitta-Session. It goes
// along with each request, so that no reply has less, whichever node gives it. A service that is alone sends no such header.

const SESSION = 'sagitta-session';
/** Of the collections used last, and the catalogue; the server accepts 64. */
const LOGS_MAX = 32;
const ITEM = /^([^:]+):(\d{1,15})$/;

export class Session {
  /** By log, the one seen last at the end. */
  readonly #positions = new Map<string, number>();

  /** Of the next request. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#positions.size === 0) return {};
    const items = [...this.#positions].map(([log, position]) => `${log}:${position}`);
    return { [SESSION]: items.join(',') };
  }

  /** The headers of a reply. */
  note(headers: Headers): void {
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
