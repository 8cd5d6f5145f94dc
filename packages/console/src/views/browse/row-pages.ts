// The rows of a list that have been read, page by page. Pages that are scrolled past before they arrive
// are aborted, and those not seen for longest are dropped.

/** Resolves to the rows from `offset` on, at most `limit`. */
export type ReadRows<Row> = (
  offset: number,
  limit: number,
  signal: AbortSignal,
) => Promise<readonly Row[]>;

interface RowPagesOptions {
  readonly pageRows: number;
  /** Pages that are kept: a bound of the memory of the page. */
  readonly pagesMax: number;
  /** A page arrived. */
  readonly onChange: () => void;
  /** A page failed; it is asked for again when it is shown again. */
  readonly onError: (error: unknown) => void;
}

export class RowPages<Row> {
  readonly #read: ReadRows<Row>;
  readonly #options: RowPagesOptions;
  /** By number, the least recently shown first. */
  readonly #pages = new Map<number, readonly Row[]>();
  readonly #requests = new Map<number, AbortController>();

  constructor(read: ReadRows<Row>, options: RowPagesOptions) {
    this.#read = read;
    this.#options = options;
  }

  /** Undefined while the row is not there. */
  rowAt(index: number): Row | undefined {
    const { pageRows } = this.#options;
    return this.#pages.get(Math.floor(index / pageRows))?.[index % pageRows];
  }

  /** Rows that are known already, from the beginning. */
  addFirst(rows: readonly Row[]): void {
    this.#pages.set(0, rows);
  }

  /** Reads what is missing of the rows, `last` being the first that is not wanted, and nothing else. */
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

  /** Aborts what is being read. */
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
