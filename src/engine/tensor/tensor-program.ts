// Searches a block by matrix products of many queries at once; where a product is not worthwhile, rows are
// scored canonically. How a product becomes candidates depends on the device: see product-scan.ts and
// top-scan.ts. Answers are exact in any case: see exact-top-k-selector.ts.

import { countBitsBetween } from '../../common/bitmap.js';
import type { VectorBlock } from '../../common/types.js';
import type { PackedQueries } from '../core/packed-queries.js';
import type { BlockHits } from '../core/per-block.js';
import { BlockCache, type BlockUsage } from './block-cache.js';
import { ExactTopKSelector } from './exact-top-k-selector.js';
import type { MatrixDevice } from './matrix-device.js';
import { ProductScan } from './product-scan.js';
import type { RowRange } from './tensor-scan.js';
import { TopScan } from './top-scan.js';

/**
 * A chunk is scanned for a query if at least one row in this many passes its filter; otherwise the passing rows
 * are scored. Per row, scoring costs 6 times as much as scanning with one query, and 11 times as much as with a
 * full batch.
 */
const SCANNED_ROWS_PER_PASSING_ROW = 8;

export class TensorProgram {
  readonly #device: MatrixDevice;
  readonly #cache: BlockCache;

  constructor(device: MatrixDevice, options: { residentBytesMax: number }) {
    this.#device = device;
    this.#cache = new BlockCache(device, options.residentBytesMax);
  }

  /** Returns one result per query, in order; null when the device has no room for the products. */
  search(block: VectorBlock, packed: PackedQueries): BlockHits[] | null {
    const cached = this.#cache.open(block);
    const productError = this.#device.productError(block.dimension);
    const selections = packed.queries.map(
      (_, index) => new ExactTopKSelector(block, cached.norms, { packed, index, productError }),
    );
    const scan =
      this.#device.kind === 'top'
        ? new TopScan(this.#device, this.#cache, block, cached)
        : new ProductScan(this.#device, this.#cache, block, cached);
    try {
      const rowCount = selections.reduce((most, { query }) => Math.max(most, query.rowCount), 0);
      for (let from = 0; from < rowCount; from += cached.chunkRowCount) {
        const range = { from, to: Math.min(from + cached.chunkRowCount, block.rowCount) };
        const scanned = scoreSparse(selections, range);
        const outcome = scanned.length === 0 ? 'scanned' : scan.scan(range, scanned);
        if (outcome === 'no room') return null;
        if (outcome === 'scanned') continue;
        for (const selection of scanned) selection.score(range.from, range.to);
      }
      if (!scan.finish()) return null;
    } finally {
      scan.dispose();
    }
    return selections.map((selection) => selection.finish());
  }

  unload(key: string): void {
    this.#cache.unload(key);
  }

  unloadAll(): void {
    this.#cache.unloadAll();
  }

  /** See `BlockCache.takeChanges`. */
  takeChanges(): BlockUsage[] {
    return this.#cache.takeChanges();
  }
}

/** Scores the rows of queries with few passing rows. Returns the selections that need a scan. */
function scoreSparse(
  selections: readonly ExactTopKSelector[],
  { from, to }: RowRange,
): ExactTopKSelector[] {
  return selections.filter((selection) => {
    const { rows, rowCount } = selection.query;
    const end = Math.min(to, rowCount);
    if (end <= from) return false;
    const passingCount = rows === null ? end - from : countBitsBetween(rows, from, end);
    selection.countScanned(passingCount);
    if (passingCount * SCANNED_ROWS_PER_PASSING_ROW >= to - from) return true;
    if (passingCount > 0) selection.score(from, end);
    return false;
  });
}
