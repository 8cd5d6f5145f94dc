// A page cache for the rows of a list. Requests for pages that are scrolled past are aborted, and the least
// recently shown pages are dropped.

/** Resolves to at most `limit` rows from `offset` on. */
export type ReadRows<Row> = (
  offset: number,
  limit: number,
  signal: AbortSignal,
) => Promise<readonly Row[]>;

interface RowPagesOptions {
  readonly pageRows: number;
  /** The number of pages to keep, which bounds memory. */
  readonly pagesMax: number;
  /** Called when a page arrives. */
  readonly onChange: () => void;
  /** Called when a page fails; it is requested again when it is shown again. */
  readonly onError: (error: unknown) => void;
}

export class RowPages<Row> {
  readonly #read: ReadRows<Row>;
  readonly #options: RowPagesOptions;
  /** Pages by number, least recently shown first. */
  readonly #pages = new Map<number, readonly Row[]>();
  readonly #requests = new Map<number, AbortController>();

  constructor(read: ReadRows<Row>, options: RowPagesOptions) {
    this.#read = read;
    this.#options = options;
  }

  /** Undefined until the row has been read. */
  rowAt(index: number): Row | undefined {
    const { pageRows } = this.#options;
    return this.#pages.get(Math.floor(index / pageRows))?.[index % pageRows];
  }

  /** Adds the first page, which has already been read. */
  addFirst(rows: readonly Row[]): void {
    this.#pages.set(0, rows);
  }

  /** Reads the missing rows of [first, last) and aborts all other requests. */
  show(first: number, last: number): void {
    const { pageRows } = this.#options;
    const wanted = new Set<number>();
    for (let page = Math.floor(first / pageRows); page * pageRows < last; page++) wanted.add(page);
    for (const [page, request] of this.#requests) {
      if (wanted.has(page)) continue;
      request.abort();
      this.#requests.delete(page);
    }
    for (const page of wanted) {
      const rows = this.#pages.get(page);
      if (rows === undefined) this.#request(page);
      else {
        this.#pages.delete(page);
        this.#pages.set(page, rows);
      }
    }
  }

  /** Aborts all requests. */
  close(): void {
    for (const request of this.#requests.values()) request.abort();
    this.#requests.clear();
  }

  async #request(page: number): Promise<void> {
    if (this.#requests.has(page)) return;
    const request = new AbortController();
    this.#requests.set(page, request);
    const { pageRows, pagesMax, onChange, onError } = this.#options;
    try {
      const rows = await this.#read(page * pageRows, pageRows, request.signal);
      if (request.signal.aborted) return;
      this.#requests.delete(page);
      this.#pages.set(page, rows);
      for (const oldest of this.#pages.keys()) {
        if (this.#pages.size <= pagesMax) break;
        this.#pages.delete(oldest);
      }
      onChange();
    } catch (error) {
      if (request.signal.aborted) return;
      this.#requests.delete(page);
      onError(error);
    }
  }
}
