// Searches a block as matrix products: many queries at once with resident chunks of rows, or with
// rows that are lent to the device for one product; the few rows for which no product is worth it
// are scored canonically. Exact whatever the mixture: see certified-selection.ts.

import { countBitsBetween } from '../bitmap.js';
import type { VectorBlock } from '../types.js';
import { BlockCache, type CachedBlock, scaledRows } from './block-cache.js';
import { CertifiedSelection } from './certified-selection.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';
import type { PackedQueries } from './packed-queries.js';
import type { BlockHits } from './per-block.js';

/**
 * A query is scanned where at least one row in this many passes; fewer are gathered and scored. A
 * row costs 6 times as much to score as to scan for one query, and 11 times for a full batch.
 */
const SCANNED_ROWS_PER_PASSING_ROW = 8;

/**
 * Rows that are not resident are lent to the device for at least this many queries, and this many
 * products of values in all: below, copying them and the calls cost as much as scoring.
 */
const LENT_QUERIES_MIN = 2;
const LENT_PRODUCTS_MIN = 2 ** 17;

interface RowRange {
  readonly from: number;
  readonly to: number;
}

export class TensorProgram {
  private readonly device: MatrixDevice;
  private readonly cache: BlockCache;

  constructor(device: MatrixDevice, options: { residentBytesMax: number }) {
    this.device = device;
    this.cache = new BlockCache(device, options.residentBytesMax);
  }

  /** One result a query, in order. */
  search(block: VectorBlock, packed: PackedQueries): BlockHits[] {
    const cached = this.cache.open(block);
    const selections = packed.queries.map(
      (_, index) => new CertifiedSelection(block, cached.facts, packed, index),
    );
    const operands = new QueryOperands(this.device, block.dimension);
    try {
      const rowCount = selections.reduce((most, { query }) => Math.max(most, query.rowCount), 0);
      for (let from = 0; from < rowCount; from += cached.chunkRowCount) {
        const range = { from, to: Math.min(from + cached.chunkRowCount, block.rowCount) };
        const scanned = scoreSparse(selections, range);
        if (scanned.length > 0 && !this.scan(block, cached, range, scanned, operands)) {
          for (const selection of scanned) selection.score(range.from, range.to);
        }
      }
    } finally {
      operands.dispose();
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
  takeChanges(): { key: string; bytes: number }[] {
    return this.cache.takeChanges();
  }

  /** Collects candidates of the range by one product; false, with nothing done, where that does not pay or has no room. */
  private scan(
    block: VectorBlock,
    cached: CachedBlock,
    range: RowRange,
    scanned: readonly CertifiedSelection[],
    operands: QueryOperands,
  ): boolean {
    const { from, to } = range;
    const resident = this.cache.matrixOf(cached, block, from / cached.chunkRowCount);
    if (resident !== null) {
      const left = operands.asRows(scanned);
      return (
        left !== null &&
        this.device.multiply(left, resident, (product) =>
          collectRows(scanned, from, resident.columnCount, product),
        )
      );
    }
    const productCount = scanned.length * (to - from) * block.dimension;
    if (scanned.length < LENT_QUERIES_MIN || productCount < LENT_PRODUCTS_MIN) return false;
    const right = operands.asColumns(scanned);
    if (right === null) return false;
    const rows = scaledRows(block, cached.facts, from, to);
    const left = this.device.load(rows, to - from, block.dimension);
    if (left === null) return false;
    try {
      return this.device.multiply(left, right, (product) =>
        collectColumns(scanned, range, product),
      );
    } finally {
      left.dispose();
    }
  }
}

/** Scores the few rows that pass where they are few, and returns the selections that want a scan. */
function scoreSparse(
  selections: readonly CertifiedSelection[],
  { from, to }: RowRange,
): CertifiedSelection[] {
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

/** `product` is row-major [scanned.length, rowCount]. */
function collectRows(
  scanned: readonly CertifiedSelection[],
  firstRow: number,
  rowCount: number,
  product: Float32Array,
): void {
  for (const [index, selection] of scanned.entries()) {
    const offset = index * rowCount;
    selection.collect({ values: product, offset, stride: 1, firstRow, rowCount });
  }
}

/** Rows collected at once for each query: 16 KiB to 64 KiB of products stay in the L1 and L2 caches. */
const COLLECTED_ROWS = 64;

/** `product` is row-major [rows, scanned.length]. */
function collectColumns(
  scanned: readonly CertifiedSelection[],
  { from, to }: RowRange,
  product: Float32Array,
): void {
  const stride = scanned.length;
  for (let firstRow = from; firstRow < to; firstRow += COLLECTED_ROWS) {
    const rowCount = Math.min(COLLECTED_ROWS, to - firstRow);
    for (const [index, selection] of scanned.entries()) {
      const offset = (firstRow - from) * stride + index;
      selection.collect({ values: product, offset, stride, firstRow, rowCount });
    }
  }
}

/** The scanned queries as operands; kept while the same queries are scanned, chunk after chunk. */
class QueryOperands {
  private readonly device: MatrixDevice;
  private readonly dimension: number;
  private selections: readonly CertifiedSelection[] = [];
  private rows: DeviceMatrix | null = null;
  private columns: DeviceMatrix | null = null;

  constructor(device: MatrixDevice, dimension: number) {
    this.device = device;
    this.dimension = dimension;
  }

  /** [selections.length, dimension]; null when the device has no room. */
  asRows(selections: readonly CertifiedSelection[]): DeviceMatrix | null {
    this.keepFor(selections);
    if (this.rows === null) {
      const values = new Float32Array(selections.length * this.dimension);
      for (const [index, { scaled }] of selections.entries()) {
        values.set(scaled, index * this.dimension);
      }
      this.rows = this.device.load(values, selections.length, this.dimension);
    }
    return this.rows;
  }

  /** [dimension, selections.length]; null when the device has no room. */
  asColumns(selections: readonly CertifiedSelection[]): DeviceMatrix | null {
    this.keepFor(selections);
    if (this.columns === null) {
      const count = selections.length;
      const values = new Float32Array(this.dimension * count);
      for (const [index, { scaled }] of selections.entries()) {
        for (let i = 0; i < scaled.length; i++) values[i * count + index] = scaled[i]!;
      }
      this.columns = this.device.load(values, this.dimension, count);
    }
    return this.columns;
  }

  dispose(): void {
    this.rows?.dispose();
    this.columns?.dispose();
    this.rows = null;
    this.columns = null;
  }

  private keepFor(selections: readonly CertifiedSelection[]): void {
    const isSame =
      selections.length === this.selections.length &&
      selections.every((selection, index) => selection === this.selections[index]);
    if (isSame) return;
    this.dispose();
    this.selections = selections;
  }
}
