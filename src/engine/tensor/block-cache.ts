// The rows kept on a tensor device. A block is cut into chunks of equal row count; a resident chunk is a right
// operand [dimension, rows], transposed for products. The incomplete chunk at the end of a block is resident
// only on devices that return the best rows ('top'), whose chunks are large; it is loaded again when the block
// has grown enough. The caller searches rows that are not resident.

import type { VectorBlock } from '../../common/types.js';
import { BlockNorms } from './block-norms.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';
import { RowTerms, shouldScan } from './row-terms.js';
import { rowScale } from './scaling.js';

/** An incomplete chunk is loaded once it has this many rows, and again when a quarter as many have been added. */
const TAIL_ROWS_MIN = 64;
const TAIL_ROWS_PER_NEW_ROW = 4;

/** Rows transposed at a time, whose cache lines stay in the L1 cache. */
const TRANSPOSED_ROWS = 8;

interface Chunk {
  matrix: DeviceMatrix | null;
  /** Set with the matrix, on devices that choose rows. */
  terms: RowTerms | null;
  /** The number of the search that last used the chunk, resident or not; 0 for none. */
  lastUse: number;
}

/** The resident rows of a chunk, from its first row on. */
interface ResidentRows {
  /** [dimension, rows] */
  readonly matrix: DeviceMatrix;
  /** Null on devices that do not choose rows. */
  readonly terms: RowTerms | null;
}

/** Why rows are not resident: the device has no room, or scanning them is not worthwhile. */
type NotResident = 'no room' | 'unsuited';

export interface BlockUsage {
  readonly key: string;
  readonly hostBytes: number;
  readonly deviceBytes: number;
}

export interface CachedBlock {
  readonly key: string;
  readonly norms: BlockNorms;
  readonly chunkRowCount: number;
  readonly chunks: Chunk[];
  /** The number of the search that last used the block. */
  lastUse: number;
  residentBytes: number;
}

export class BlockCache {
  readonly #device: MatrixDevice;
  #bytesMax: number;
  readonly #blocks = new Map<string, CachedBlock>();
  readonly #changedKeys = new Set<string>();
  /** A buffer for the chunk that is being loaded. */
  #transposed = new Float32Array(0);
  #bytesUsed = 0;
  #search = 0;

  constructor(device: MatrixDevice, bytesMax: number) {
    this.#device = device;
    this.#bytesMax = bytesMax;
  }

  /** Starts a search of the block and computes the norms of its new rows. */
  open(block: VectorBlock): CachedBlock {
    this.#search++;
    let cached = this.#blocks.get(block.key);
    if (cached === undefined) {
      cached = createCachedBlock(block, this.#device);
      this.#blocks.set(block.key, cached);
    }
    cached.lastUse = this.#search;
    const bytesBefore = cached.norms.byteCount;
    cached.norms.extend(block);
    this.#account(cached, cached.norms.byteCount - bytesBefore);
    this.#forgetIdleBlocks();
    return cached;
  }

  /**
   * Returns the resident rows of a chunk, which are loaded if there are enough of them and there is room. They
   * may be more than an older version of the block has, and fewer than the chunk has by now.
   */
  residentOf(
    cached: CachedBlock,
    block: VectorBlock,
    chunkIndex: number,
  ): ResidentRows | NotResident {
    cached.chunks[chunkIndex] ??= { matrix: null, terms: null, lastUse: 0 };
    const chunk = cached.chunks[chunkIndex]!;
    const firstRow = chunkIndex * cached.chunkRowCount;
    const rowCount = Math.min(cached.chunkRowCount, block.rowCount - firstRow);
    if (this.#mustLoad(chunk, rowCount, rowCount === cached.chunkRowCount)) {
      const isSuited =
        this.#device.kind === 'product' || shouldScan(cached.norms, firstRow, firstRow + rowCount);
      if (!isSuited) return 'unsuited';
      this.#evict(cached, chunk);
      this.#admit(cached, chunk, block, { firstRow, rowCount });
    } else if (chunk.matrix === null) {
      return 'unsuited';
    }
    chunk.lastUse = this.#search;
    if (chunk.matrix === null) return 'no room';
    return { matrix: chunk.matrix, terms: chunk.terms };
  }

  /** Lowers the budget for good and evicts chunks, because the device has less memory than expected. */
  shrink(): void {
    this.#bytesMax = Math.floor(this.#bytesUsed * 0.8);
    this.#makeRoom(0, Number.POSITIVE_INFINITY);
  }

  unload(key: string): void {
    const cached = this.#blocks.get(key);
    if (cached === undefined) return;
    for (const chunk of cached.chunks) if (chunk !== undefined) this.#evict(cached, chunk);
    this.#account(cached, -cached.norms.byteCount);
    this.#blocks.delete(key);
  }

  unloadAll(): void {
    for (const key of [...this.#blocks.keys()]) this.unload(key);
  }

  /** Returns the usage of each block whose usage has changed since the last call. */
  takeChanges(): BlockUsage[] {
    const changes = [...this.#changedKeys].map((key) => {
      const cached = this.#blocks.get(key);
      const factBytes = cached?.norms.byteCount ?? 0;
      const residentBytes = cached?.residentBytes ?? 0;
      return this.#device.hasOwnMemory
        ? { key, hostBytes: factBytes, deviceBytes: residentBytes }
        : { key, hostBytes: factBytes + residentBytes, deviceBytes: 0 };
    });
    this.#changedKeys.clear();
    return changes;
  }

  #mustLoad({ matrix }: Chunk, rowCount: number, isFull: boolean): boolean {
    const residentCount = matrix?.columnCount ?? 0;
    if (isFull) return residentCount < rowCount;
    if (this.#device.kind === 'product' || rowCount < TAIL_ROWS_MIN) return false;
    return (rowCount - residentCount) * TAIL_ROWS_PER_NEW_ROW > residentCount;
  }

  #admit(
    cached: CachedBlock,
    chunk: Chunk,
    block: VectorBlock,
    { firstRow, rowCount }: { firstRow: number; rowCount: number },
  ): void {
    const { dimension } = block;
    const device = this.#device;
    if (!this.#makeRoom(this.#bytesOf(dimension, rowCount), chunk.lastUse)) return;
    if (device.kind === 'top') {
      const range = { from: firstRow, to: firstRow + rowCount };
      chunk.terms = RowTerms.load(device, cached.norms, range);
      if (chunk.terms === null) {
        this.shrink();
        return;
      }
    }
    const valueCount = dimension * rowCount;
    if (this.#transposed.length < valueCount) this.#transposed = new Float32Array(valueCount);
    const transposed = this.#transposed.subarray(0, valueCount);
    transposeRows(block, cached.norms, { firstRow, rowCount }, transposed);
    chunk.matrix = device.load(transposed, dimension, rowCount);
    if (chunk.matrix === null) {
      chunk.terms?.dispose();
      chunk.terms = null;
      // Failing allocations are slow on such a device, so they are not tried again and again.
      if (device.kind === 'top') this.shrink();
      return;
    }
    const bytes = this.#bytesOf(dimension, rowCount);
    cached.residentBytes += bytes;
    this.#account(cached, bytes);
  }

  /** Bytes of resident rows with their terms. */
  #bytesOf(dimension: number, rowCount: number): number {
    const rowsOfTerms = this.#device.kind === 'top' ? 2 : 0;
    return this.#device.residentBytes(dimension + rowsOfTerms, rowCount);
  }

  /**
   * Evicts the least recently used chunks whose last use is before that of the new chunk. Repeated scans
   * of more rows than fit therefore keep a part resident instead of replacing each chunk just before
   * its next use, and a block searched only once evicts nothing.
   */
  #makeRoom(bytes: number, newcomerLastUse: number): boolean {
    while (this.#bytesUsed + bytes > this.#bytesMax) {
      let victim: { cached: CachedBlock; chunk: Chunk } | null = null;
      for (const cached of this.#blocks.values()) {
        for (const chunk of cached.chunks) {
          if (chunk === undefined || chunk.matrix === null) continue;
          if (chunk.lastUse >= (victim?.chunk.lastUse ?? newcomerLastUse)) continue;
          victim = { cached, chunk };
        }
      }
      if (victim === null) return false;
      this.#evict(victim.cached, victim.chunk);
    }
    return true;
  }

  #evict(cached: CachedBlock, chunk: Chunk): void {
    if (chunk.matrix === null) return;
    const bytes = this.#bytesOf(chunk.matrix.rowCount, chunk.matrix.columnCount);
    chunk.matrix.dispose();
    chunk.matrix = null;
    chunk.terms?.dispose();
    chunk.terms = null;
    cached.residentBytes -= bytes;
    this.#account(cached, -bytes);
  }

  /** Frees the norms of other blocks without a resident chunk, since norms count against the budget, too. */
  #forgetIdleBlocks(): void {
    if (this.#bytesUsed <= this.#bytesMax) return;
    const idle = [...this.#blocks.values()]
      .filter((cached) => cached.residentBytes === 0 && cached.lastUse !== this.#search)
      .sort((left, right) => left.lastUse - right.lastUse);
    for (const cached of idle) {
      if (this.#bytesUsed <= this.#bytesMax) return;
      this.unload(cached.key);
    }
  }

  #account(cached: CachedBlock, bytes: number): void {
    if (bytes === 0) return;
    this.#bytesUsed += bytes;
    this.#changedKeys.add(cached.key);
  }
}

function createCachedBlock(
  { key, dimension }: VectorBlock,
  { chunkValuesMax, chunkRowsMax }: MatrixDevice,
): CachedBlock {
  const rowCount = Math.floor(chunkValuesMax / dimension / 64) * 64;
  const chunkRowCount = Math.min(chunkRowsMax, Math.max(64, rowCount));
  return { key, norms: new BlockNorms(), chunkRowCount, chunks: [], lastUse: 0, residentBytes: 0 };
}

/** Returns the rows from..to, scaled, as a left operand [rows, dimension]; not a copy if no row needs scaling. */
export function scaledRows(
  block: VectorBlock,
  norms: BlockNorms,
  from: number,
  to: number,
): Float32Array {
  const { values, dimension } = block;
  const view = values.subarray(from * dimension, to * dimension);
  let copy: Float32Array | null = null;
  for (let row = from; row < to; row++) {
    const scale = rowScale(norms.squares[row]!);
    if (scale === 1) continue;
    copy ??= Float32Array.from(view);
    const start = (row - from) * dimension;
    for (let i = start; i < start + dimension; i++) copy[i]! *= scale;
  }
  return copy ?? view;
}

/** Writes rows, scaled, as a right operand [dimension, rowCount] into `transposed`. */
function transposeRows(
  { values, dimension }: VectorBlock,
  norms: BlockNorms,
  { firstRow, rowCount }: { firstRow: number; rowCount: number },
  transposed: Float32Array,
): void {
  for (let start = 0; start < rowCount; start += TRANSPOSED_ROWS) {
    const count = Math.min(TRANSPOSED_ROWS, rowCount - start);
    for (let column = 0; column < dimension; column++) {
      let from = (firstRow + start) * dimension + column;
      const to = column * rowCount + start;
      for (let i = 0; i < count; i++) {
        transposed[to + i] = values[from]!;
        from += dimension;
      }
    }
  }
  for (let i = 0; i < rowCount; i++) {
    const scale = rowScale(norms.squares[firstRow + i]!);
    if (scale === 1) continue;
    for (let column = 0; column < dimension; column++) {
      transposed[column * rowCount + i]! *= scale;
    }
  }
}
