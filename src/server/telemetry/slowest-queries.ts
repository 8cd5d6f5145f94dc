// The slowest queries of the last hour. The slowest of each part of the hour are kept, among which those of the whole
// hour are, so that the list takes little memory and no timer.

/** Enough to show what is slow; each part of the hour keeps as many. */
const QUERIES_MAX = 20;
const PART_MS = 5 * 60_000;
const PARTS_MAX = 13;

/** What was slow, without vectors, values, metadata paths or cursors. */
interface SlowQuery {
  /** By the clock of the list. */
  readonly endedAtMs: number;
  readonly milliseconds: number;
  readonly requestId: string;
  readonly collection: string;
  /** The members of its line in the log. */
  readonly line: object;
}

interface Part {
  readonly number: number;
  /** Slowest first. */
  readonly queries: SlowQuery[];
}

export class SlowestQueries {
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
  /** Oldest first. */
  readonly #parts: Part[] = [];

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** `describe` is called only if the query is among the slowest. */
  add(query: Omit<SlowQuery, 'endedAtMs' | 'line'>, describe: () => object): void {
    const endedAtMs = this.nowMs();
    const { queries } = this.#partAt(endedAtMs);
    const { milliseconds } = query;
    if (queries.length === QUERIES_MAX && milliseconds <= queries.at(-1)!.milliseconds) return;
    const at = queries.findIndex((other) => other.milliseconds < milliseconds);
    const added = { ...query, endedAtMs, line: describe() };
    queries.splice(at === -1 ? queries.length : at, 0, added);
    if (queries.length > QUERIES_MAX) queries.pop();
  }

  /** Slowest first, at most `QUERIES_MAX`. */
  list(minutes: number, isVisible: (collectionId: string) => boolean): readonly SlowQuery[] {
    const sinceMs = this.nowMs() - minutes * 60_000;
    return this.#parts
      .flatMap(({ queries }) => queries)
      .filter(({ endedAtMs, collection }) => endedAtMs >= sinceMs && isVisible(collection))
      .sort((a, b) => b.milliseconds - a.milliseconds)
      .slice(0, QUERIES_MAX);
  }

  #partAt(timeMs: number): Part {
    const number = Math.floor(timeMs / PART_MS);
    const last = this.#parts.at(-1);
    if (last?.number === number) return last;
    const part = { number, queries: [] };
    this.#parts.push(part);
    while (this.#parts[0]!.number <= number - PARTS_MAX) this.#parts.shift();
    return part;
  }
}
