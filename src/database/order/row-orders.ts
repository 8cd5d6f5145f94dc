// The orders of sorted lists, kept between their pages: a snapshot is sorted once, and a page at any place
// then costs what its rows cost. An order that was dropped is made again from the same snapshot.

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

interface KeptOrder {
  readonly rowCount: number;
  readonly positions: Promise<Uint32Array>;
}

export class RowOrders {
  readonly #pool: WorkerPool;
  readonly #rowsMax: number;
  /** The least recently used first. */
  readonly #kept = new Map<string, KeptOrder>();
  #rowCount = 0;

  /** @param options.rowsMax of all orders together, at four bytes each. */
  constructor(options: { readonly pool: WorkerPool; readonly rowsMax: number }) {
    this.#pool = options.pool;
    this.#rowsMax = options.rowsMax;
  }

  /**
   * The visible rows of the targets in their order, each by its position in the order of arrival, which a
   * compaction does not change. Rejects with `limit_exceeded` and `overloaded`.
   */
  async order(
    key: OrderKey,
    targets: readonly OrderTarget[],
    rowCount: number,
  ): Promise<Uint32Array> {
    if (rowCount > this.#rowsMax) throw tooManyRows(rowCount, this.#rowsMax);
    const name = createHash('sha256').update(stringifyExactJson(key)).digest('base64');
    const kept = this.#take(name) ?? this.#start(key.sort, targets, rowCount);
    this.#keep(name, kept);
    try {
      return await kept.positions;
    } catch (error) {
      this.#take(name);
      throw error;
    }
  }

  #start(sort: OrderKey['sort'], targets: readonly OrderTarget[], rowCount: number): KeptOrder {
    const input = orderInput(sort, targets);
    return { rowCount, positions: this.#pool.run(orderRowsTask, input, { mayBeRefused: true }) };
  }

  #keep(name: string, order: KeptOrder): void {
    this.#kept.set(name, order);
    this.#rowCount += order.rowCount;
    for (const oldest of this.#kept.keys()) {
      if (this.#rowCount <= this.#rowsMax) return;
      this.#take(oldest);
    }
  }

  #take(name: string): KeptOrder | undefined {
    const kept = this.#kept.get(name);
    this.#kept.delete(name);
    this.#rowCount -= kept?.rowCount ?? 0;
    return kept;
  }
}

function tooManyRows(rowCount: number, rowsMax: number): Error {
  const detail = `A list sorts at most ${rowsMax} vectors; ${rowCount} pass the filter. Filter further, or list in insertion order.`;
  const bound = { expected: rowsMax, actual: rowCount };
  return validationError([{ location: field('sort'), code: 'limit_exceeded', detail, ...bound }]);
}
