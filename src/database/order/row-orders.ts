// A cache of the orders of sorted lists: a snapshot is sorted once, and a page at any offset then
// costs only its rows. An evicted order is computed again from the same snapshot.

import { createHash } from 'node:crypto';
import { field, validationError } from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { JsonObject } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { SortKey } from '../api/query-api.js';
import { type OrderTarget, orderInput, orderRowsTask } from './order-rows.js';

/** Everything that the order of rows depends on. */
export interface OrderKey {
  readonly incarnation: string;
  readonly sequence: number;
  readonly filter: JsonObject | null;
  readonly sort: readonly SortKey[];
}

interface CachedOrder {
  readonly rowCount: number;
  readonly rows: Promise<Uint32Array>;
}

export class RowOrders {
  readonly #pool: WorkerPool;
  readonly #rowsMax: number;
  /** The least recently used order is first. */
  readonly #cached = new Map<string, CachedOrder>();
  #rowCount = 0;

  /** @param options.rowsMax the maximum number of rows of all orders together, at four bytes each. */
  constructor(options: { readonly pool: WorkerPool; readonly rowsMax: number }) {
    this.#pool = options.pool;
    this.#rowsMax = options.rowsMax;
  }

  /**
   * The visible rows of the targets in their order, each as its index in the order of arrival, which compactions do not
   * change. Rejects with `limit_exceeded` and `overloaded`.
   */
  async order(
    key: OrderKey,
    targets: readonly OrderTarget[],
    rowCount: number,
  ): Promise<Uint32Array> {
    if (rowCount > this.#rowsMax) throw tooManyRows(rowCount, this.#rowsMax);
    const name = createHash('sha256').update(stringifyExactJson(key)).digest('base64');
    const cached = this.#take(name) ?? this.#start(key.sort, targets, rowCount);
    this.#put(name, cached);
    try {
      return await cached.rows;
    } catch (error) {
      this.#take(name);
      throw error;
    }
  }

  #start(sort: OrderKey['sort'], targets: readonly OrderTarget[], rowCount: number): CachedOrder {
    const input = orderInput(sort, targets);
    return { rowCount, rows: this.#pool.run(orderRowsTask, input, { mayBeRefused: true }) };
  }

  #put(name: string, order: CachedOrder): void {
    this.#cached.set(name, order);
    this.#rowCount += order.rowCount;
    for (const oldest of this.#cached.keys()) {
      if (this.#rowCount <= this.#rowsMax) return;
      this.#take(oldest);
    }
  }

  #take(name: string): CachedOrder | undefined {
    const cached = this.#cached.get(name);
    this.#cached.delete(name);
    this.#rowCount -= cached?.rowCount ?? 0;
    return cached;
  }
}

function tooManyRows(rowCount: number, rowsMax: number): Error {
  const detail = `Expected at most ${rowsMax} vectors to sort; found ${rowCount} that pass the filter. Narrow the filter, or list in insertion order.`;
  const bound = { expected: rowsMax, actual: rowCount };
  return validationError([{ location: field('sort'), code: 'limit_exceeded', detail, ...bound }]);
}
