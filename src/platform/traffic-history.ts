// The traffic of the last hour in at most 1 MB: requests, errors, latencies, written rows, and the queries of each
// collection. Counts are kept for intervals of 30 seconds in a ring, which is cleared when it is written to, so that
// there are no timers, and an event costs a few additions.

import { assert } from '../common/errors.js';

const INTERVAL_SECONDS = 30;
export const WINDOW_MINUTES_MAX = 60;
const INTERVAL_MS = INTERVAL_SECONDS * 1000;
const INTERVALS_MAX = (WINDOW_MINUTES_MAX * 60) / INTERVAL_SECONDS;
/** Each has 20 kB; others are summed. */
const COLLECTIONS_MAX = 48;

/** Latencies up to 0.1 ms, and above it in steps of √2, which bounds the error of a percentile to a fifth. */
const LATENCY_MS_MIN = 0.1;
const STEPS_PER_OCTAVE = 2;
/** The last one includes everything from 50 s on. */
const LATENCIES = 40;
const ERRORS = LATENCIES;
const ROWS = LATENCIES + 1;
const COLUMNS = LATENCIES + 2;

/** Milliseconds, null if nothing was measured. */
interface Latencies {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

interface TrafficInterval extends Latencies {
  /** Milliseconds of the clock of the history. */
  readonly startMs: number;
  /** Less than `INTERVAL_SECONDS` for the first and for the current interval. */
  readonly seconds: number;
  readonly requests: number;
  readonly errors: number;
  readonly rowsWritten: number;
}

/** `id` is null for the sum of the collections that are not listed. */
interface CollectionTraffic extends Latencies {
  readonly id: string | null;
  readonly queries: number;
  readonly rowsWritten: number;
}

interface Traffic {
  readonly intervals: readonly TrafficInterval[];
  /** Those with traffic, in the order of their ids, the sum last. */
  readonly collections: readonly CollectionTraffic[];
}

export class TrafficHistory {
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
  readonly #startMs: number;
  readonly #total = new Series();
  readonly #collections = new Map<string, Series>();
  readonly #others = new Series();

  constructor(nowMs: () => number = () => performance.now()) {
    this.nowMs = nowMs;
    this.#startMs = nowMs();
  }

  requestEnded(milliseconds: number, isError: boolean): void {
    const slot = this.#slot();
    this.#total.add(slot, columnOf(milliseconds), 1);
    if (isError) this.#total.add(slot, ERRORS, 1);
  }

  /** `count` queries of a collection have been answered together. */
  queried(collectionId: string, milliseconds: number, count: number): void {
    const slot = this.#slot();
    this.#seriesOf(collectionId, slot).add(slot, columnOf(milliseconds), count);
  }

  written(collectionId: string, rowCount: number): void {
    if (rowCount === 0) return;
    const slot = this.#slot();
    this.#total.add(slot, ROWS, rowCount);
    this.#seriesOf(collectionId, slot).add(slot, ROWS, rowCount);
  }

  /** The last `minutes`, at most `WINDOW_MINUTES_MAX`. Collections that are not visible become part of the sum. */
  read(minutes: number, isVisible: (collectionId: string) => boolean): Traffic {
    assert(minutes >= 1 && minutes <= WINDOW_MINUTES_MAX, 'the history covers the window');
    const last = this.#slot();
    const first = Math.max(
      slotAt(this.#startMs),
      last + 1 - Math.ceil((minutes * 60) / INTERVAL_SECONDS),
    );
    const intervals: TrafficInterval[] = [];
    for (let slot = first; slot <= last; slot++) intervals.push(this.#interval(slot));
    const others = this.#others.sum(first, last);
    const collections: CollectionTraffic[] = [];
    for (const [id, series] of [...this.#collections].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const counts = series.sum(first, last);
      if (isVisible(id)) collections.push({ id, ...trafficOf(counts) });
      else for (const [i, count] of counts.entries()) others[i]! += count;
    }
    collections.push({ id: null, ...trafficOf(others) });
    return {
      intervals,
      collections: collections.filter(({ queries, rowsWritten }) => queries + rowsWritten > 0),
    };
  }

  #interval(slot: number): TrafficInterval {
    const counts = this.#total.sum(slot, slot);
    const { queries: requests, ...rest } = trafficOf(counts);
    const startMs = Math.max(this.#startMs, slot * INTERVAL_MS);
    const seconds = Math.round(Math.min(this.nowMs(), (slot + 1) * INTERVAL_MS) - startMs) / 1000;
    return {
      startMs,
      seconds,
      requests,
      errors: counts[ERRORS]!,
      ...rest,
    };
  }

  #slot(): number {
    return slotAt(this.nowMs());
  }

  #seriesOf(collectionId: string, slot: number): Series {
    const known = this.#collections.get(collectionId);
    if (known !== undefined) return known;
    if (this.#collections.size === COLLECTIONS_MAX) {
      for (const [id, { lastSlot }] of this.#collections) {
        if (lastSlot <= slot - INTERVALS_MAX) this.#collections.delete(id);
      }
    }
    if (this.#collections.size === COLLECTIONS_MAX) return this.#others;
    const series = new Series();
    this.#collections.set(collectionId, series);
    return series;
  }
}

/** Counts by interval, in a ring. */
class Series {
  /** Row-major [INTERVALS_MAX, COLUMNS]; the rows of slots after `lastSlot` are out of date. */
  readonly #counts = new Uint32Array(INTERVALS_MAX * COLUMNS);
  lastSlot = Number.NEGATIVE_INFINITY;

  add(slot: number, column: number, amount: number): void {
    if (slot > this.lastSlot) this.#advance(slot);
    this.#counts[(slot % INTERVALS_MAX) * COLUMNS + column]! += amount;
  }

  /** Both ends included; the window has at most INTERVALS_MAX slots and ends now. */
  sum(first: number, last: number): Float64Array {
    const sums = new Float64Array(COLUMNS);
    for (let slot = first; slot <= Math.min(last, this.lastSlot); slot++) {
      const start = (slot % INTERVALS_MAX) * COLUMNS;
      for (let column = 0; column < COLUMNS; column++) {
        sums[column]! += this.#counts[start + column]!;
      }
    }
    return sums;
  }

  #advance(slot: number): void {
    const from = Math.max(this.lastSlot + 1, slot - INTERVALS_MAX + 1, 0);
    for (let cleared = from; cleared <= slot; cleared++) {
      const start = (cleared % INTERVALS_MAX) * COLUMNS;
      this.#counts.fill(0, start, start + COLUMNS);
    }
    this.lastSlot = slot;
  }
}

function slotAt(timeMs: number): number {
  return Math.floor(timeMs / INTERVAL_MS);
}

function columnOf(milliseconds: number): number {
  if (!(milliseconds > LATENCY_MS_MIN)) return 0;
  const step = Math.ceil(Math.log2(milliseconds / LATENCY_MS_MIN) * STEPS_PER_OCTAVE);
  return Math.min(step, LATENCIES - 1);
}

function trafficOf(counts: Float64Array) {
  const latencies = counts.subarray(0, LATENCIES);
  const queries = latencies.reduce((sum, count) => sum + count, 0);
  return {
    queries,
    rowsWritten: counts[ROWS]!,
    p50Ms: quantileOf(latencies, queries, 0.5),
    p95Ms: quantileOf(latencies, queries, 0.95),
    p99Ms: quantileOf(latencies, queries, 0.99),
  };
}

/** Interpolated on a logarithmic scale within the step that contains the quantile. */
function quantileOf(latencies: Float64Array, total: number, quantile: number): number | null {
  if (total === 0) return null;
  const rank = quantile * total;
  let step = 0;
  let below = 0;
  while (step < LATENCIES - 1 && below + latencies[step]! < rank) below += latencies[step++]!;
  const exponent = step - 1 + (rank - below) / latencies[step]!;
  return Number((LATENCY_MS_MIN * 2 ** (exponent / STEPS_PER_OCTAVE)).toPrecision(3));
}
