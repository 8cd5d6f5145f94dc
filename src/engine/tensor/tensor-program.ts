// Searches a block as matrix products, many queries at once; the few rows for which no product is
// worth it are scored canonically. Devices differ in how a product becomes candidates: see
// tensor-product-scan.ts and tensor-top-scan.ts. Exact whatever the mixture: certified-selection.ts.

import { countBitsBetween } from '../../common/bitmap.js';
import type { VectorBlock } from '../../common/types.js';
import { ExactTopKSelector } from '../core/exact-top-k-selector.js';
import type { PackedQueries } from '../core/packed-queries.js';
import type { BlockHits } from '../core/per-block.js';
import { BlockCache, type BlockUsage } from './block-cache.js';
import type { MatrixDevice } from './matrix-device.js';
import { ProductScan } from './tensor-product-scan.js';
import type { RowRange } from './tensor-scan.js';
import { TopScan } from './tensor-top-scan.js';

/**
 * A query is scanned where at least one row in this many passes; fewer are gathered and scored. A
 * row costs 6 times as much to score as to scan for one query, and 11 times for a full batch.
 */
const SCANNED_ROWS_PER_PASSING_ROW = 8;

export class TensorProgram {
  private readonly device: MatrixDevice;
  private readonly cache: BlockCache;

  constructor(device: MatrixDevice, options: { residentBytesMax: number }) {
    this.device = device;
    this.cache = new BlockCache(device, options.residentBytesMax);
  }

  /** One result a query, in order; null when the device has no room and others would be faster. */
  search(block: VectorBlock, packed: PackedQueries): BlockHits[] | null {
    const cached = this.cache.open(block);
    const productError = this.device.productError(block.dimension);
    const selections = packed.queries.map(
      (_, index) => new ExactTopKSelector(block, cached.facts, { packed, index, productError }),
    );
    const scan =
      this.device.kind === 'top'
        ? new TopScan(this.device, this.cache, block, cached)
        : new ProductScan(this.device, this.cache, block, cached);
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
    this.cache.unload(key);
  }

  unloadAll(): void {
    this.cache.unloadAll();
  }

  /** See BlockCache. */
  takeChanges(): BlockUsage[] {
    return this.cache.takeChanges();
  }
}

/** Scores the few rows that pass where they are few, and returns the selections that want a scan. */
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
