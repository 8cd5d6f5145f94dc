// The scan of a batch over a block on a device whose products are read whole: with resident chunks of
// rows, or with rows that are copied to the device for one product.

import type { VectorBlock } from '../../common/types.js';
import { type BlockCache, type CachedBlock, scaledRows } from './block-cache.js';
import type { ExactTopKSelector } from './exact-top-k-selector.js';
import type { ProductDevice } from './matrix-device.js';
import { QueryOperands } from './query-operands.js';
import type { RowRange, TensorScan } from './tensor-scan.js';

/**
 * Rows that are not resident are copied to the device only for at least this many queries and products of
 * values; below that, copies and calls cost as much as scoring.
 */
const COPIED_QUERIES_MIN = 2;
const COPIED_PRODUCTS_MIN = 2 ** 17;

export class ProductScan implements TensorScan {
  readonly #device: ProductDevice;
  readonly #cache: BlockCache;
  readonly #block: VectorBlock;
  readonly #cached: CachedBlock;
  readonly #operands: QueryOperands;

  constructor(device: ProductDevice, cache: BlockCache, block: VectorBlock, cached: CachedBlock) {
    this.#device = device;
    this.#cache = cache;
    this.#block = block;
    this.#cached = cached;
    this.#operands = new QueryOperands(device, block.dimension);
  }

  scan(range: RowRange, scanned: readonly ExactTopKSelector[]): 'scanned' | 'unsuited' {
    const { from, to } = range;
    const block = this.#block;
    const cached = this.#cached;
    const operands = this.#operands;
    const resident = this.#cache.residentOf(cached, block, from / cached.chunkRowCount);
    if (typeof resident === 'object') {
      const { matrix } = resident;
      const left = operands.asRows(scanned);
      const isScanned =
        left !== null &&
        this.#device.multiply(left, matrix, (product) =>
          collectRows(scanned, from, matrix.columnCount, product),
        );
      return isScanned ? 'scanned' : 'unsuited';
    }
    const productCount = scanned.length * (to - from) * block.dimension;
    if (scanned.length < COPIED_QUERIES_MIN || productCount < COPIED_PRODUCTS_MIN)
      return 'unsuited';
    const right = operands.asColumns(scanned);
    if (right === null) return 'unsuited';
    const rows = scaledRows(block, cached.norms, from, to);
    const left = this.#device.load(rows, to - from, block.dimension);
    if (left === null) return 'unsuited';
    try {
      const isScanned = this.#device.multiply(left, right, (product) =>
        collectColumns(scanned, range, product),
      );
      return isScanned ? 'scanned' : 'unsuited';
    } finally {
      left.dispose();
    }
  }

  /** All candidates were collected by `scan`. */
  finish(): boolean {
    return true;
  }

  dispose(): void {
    this.#operands.dispose();
  }
}

/** `product` is row-major [scanned.length, rowCount]. */
function collectRows(
  scanned: readonly ExactTopKSelector[],
  firstRow: number,
  rowCount: number,
  product: Float32Array,
): void {
  for (const [index, selection] of scanned.entries()) {
    const offset = index * rowCount;
    selection.collect({ values: product, offset, stride: 1, firstRow, rowCount });
  }
}

/** Rows collected per query at a time: their 16 to 64 KiB of products stay in the L1 and L2 caches. */
const COLLECTED_ROWS = 64;

/** `product` is row-major [rows, scanned.length]. */
function collectColumns(
  scanned: readonly ExactTopKSelector[],
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
