// Which rows stay on the device. A block is cut into chunks of equal row count; a chunk may be
// resident, as the transposed right operand [dimension, rows] that products want. What is left at the
// end of a block stays with it only where chunks are large, on devices that hand out the best rows: it
// is loaded again once the block has grown by a good part of it. What is not resident is the caller's.

import type { VectorBlock } from '../../common/types.js';
import { BlockNorms } from '../core/block-norms.js';
import { rowScale } from '../core/scaling.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';
import { isWorthScanning, RowTerms } from './row-terms.js';

/** The end of a block is resident from this many rows on, and until this part of it is new. */
const TAIL_ROWS_MIN = 64;
const TAIL_ROWS_PER_NEW_ROW = 4;

/** Rows transposed at once: their cache lines stay in the L1 cache. */
const TRANSPOSED_ROWS = 8;

interface Chunk {
  matrix: DeviceMatrix | null;
  /** Where the device chooses rows, as long as there is a matrix. */
  terms: RowTerms | null;
  /** The search that used it last, resident or not; 0 when none did. */
  lastUse: number;
}

/** Rows from the start of a chunk, as the right operand [dimension, rows]. */
export interface Resident {
  readonly matrix: DeviceMatrix;
  /** Where the device chooses rows. */
  readonly terms: RowTerms | null;
}

/** Why rows are not resident: no room for them, or not worth it. */
export type Absent = 'no room' | 'unsuited';

export interface BlockUsage {
  readonly key: string;
  readonly hostBytes: number;
  readonly deviceBytes: number;
}

export interface CachedBlock {
  readonly key: string;
  readonly facts: BlockNorms;
  readonly chunkRowCount: number;
  readonly chunks: Chunk[];
  /** The search that used it last. */
  lastUse: number;
  residentBytes: number;
}

export class BlockCache {
  private readonly device: MatrixDevice;
  private bytesMax: number;
  private readonly blocks = new Map<string, CachedBlock>();
  private readonly changedKeys = new Set<string>();
  /** A chunk on its way to the device. */
  private transposed = new Float32Array(0);
  private bytesUsed = 0;
  private search = 0;

  constructor(device: MatrixDevice, bytesMax: number) {
    this.device = device;
    this.bytesMax = bytesMax;
  }

  /** Begins a search of the block, and learns the facts of rows that are new. */
  open(block: VectorBlock): CachedBlock {
    this.search++;
    let cached = this.blocks.get(block.key);
    if (cached === undefined) {
      cached = createCachedBlock(block, this.device);
      this.blocks.set(block.key, cached);
    }
    cached.lastUse = this.search;
    const bytesBefore = cached.facts.byteCount;
    cached.facts.extend(block);
    this.account(cached, cached.facts.byteCount - bytesBefore);
    this.forgetIdleBlocks();
    return cached;
  }

  /**
   * The resident rows of a chunk, loaded if there are enough of them and there is room. They may be
   * more than an older view of the block has, and fewer than the chunk has by now.
   */
  residentOf(cached: CachedBlock, block: VectorBlock, chunkIndex: number): Resident | Absent {
    cached.chunks[chunkIndex] ??= { matrix: null, terms: null, lastUse: 0 };
    const chunk = cached.chunks[chunkIndex]!;
    const firstRow = chunkIndex * cached.chunkRowCount;
    const rowCount = Math.min(cached.chunkRowCount, block.rowCount - firstRow);
    if (this.mustLoad(chunk, rowCount, rowCount === cached.chunkRowCount)) {
      const isSuited =
        this.device.kind === 'product' ||
        isWorthScanning(cached.facts, firstRow, firstRow + rowCount);
      if (!isSuited) return 'unsuited';
      this.evict(cached, chunk);
      this.admit(cached, chunk, block, { firstRow, rowCount });
    } else if (chunk.matrix === null) {
      return 'unsuited';
    }
    chunk.lastUse = this.search;
    if (chunk.matrix === null) return 'no room';
    return { matrix: chunk.matrix, terms: chunk.terms };
  }

  /** Gives up a part of what is resident, for good: the device has less room than was thought. */
  shrink(): void {
    this.bytesMax = Math.floor(this.bytesUsed * 0.8);
    this.makeRoom(0, Number.POSITIVE_INFINITY);
  }

  unload(key: string): void {
    const cached = this.blocks.get(key);
    if (cached === undefined) return;
    for (const chunk of cached.chunks) if (chunk !== undefined) this.evict(cached, chunk);
    this.account(cached, -cached.facts.byteCount);
    this.blocks.delete(key);
  }

  unloadAll(): void {
    for (const key of [...this.blocks.keys()]) this.unload(key);
  }

  /** What is kept for each block for which it has changed since the last call. */
  takeChanges(): BlockUsage[] {
    const changes = [...this.changedKeys].map((key) => {
      const cached = this.blocks.get(key);
      const factBytes = cached?.facts.byteCount ?? 0;
      const residentBytes = cached?.residentBytes ?? 0;
      return this.device.hasOwnMemory
        ? { key, hostBytes: factBytes, deviceBytes: residentBytes }
        : { key, hostBytes: factBytes + residentBytes, deviceBytes: 0 };
    });
    this.changedKeys.clear();
    return changes;
  }

  private mustLoad({ matrix }: Chunk, rowCount: number, isFull: boolean): boolean {
    const residentCount = matrix?.columnCount ?? 0;
    if (isFull) return residentCount < rowCount;
    if (this.device.kind === 'product' || rowCount < TAIL_ROWS_MIN) return false;
    return (rowCount - residentCount) * TAIL_ROWS_PER_NEW_ROW > residentCount;
  }

  private admit(
    cached: CachedBlock,
    chunk: Chunk,
    block: VectorBlock,
    { firstRow, rowCount }: { firstRow: number; rowCount: number },
  ): void {
    const { dimension } = block;
    const { device } = this;
    if (!this.makeRoom(this.bytesOf(dimension, rowCount), chunk.lastUse)) return;
    if (device.kind === 'top') {
      const range = { from: firstRow, to: firstRow + rowCount };
      chunk.terms = RowTerms.load(device, cached.facts, range);
      if (chunk.terms === null) {
        this.shrink();
        return;
      }
    }
    const valueCount = dimension * rowCount;
    if (this.transposed.length < valueCount) this.transposed = new Float32Array(valueCount);
    const transposed = this.transposed.subarray(0, valueCount);
    transposeRows(block, cached.facts, { firstRow, rowCount }, transposed);
    chunk.matrix = device.load(transposed, dimension, rowCount);
    if (chunk.matrix === null) {
      chunk.terms?.dispose();
      chunk.terms = null;
      // Asking such a device again and again is slow.
      if (device.kind === 'top') this.shrink();
      return;
    }
    const bytes = this.bytesOf(dimension, rowCount);
    cached.residentBytes += bytes;
    this.account(cached, bytes);
  }

  /** Of resident rows, with their terms. */
  private bytesOf(dimension: number, rowCount: number): number {
    const rowsOfTerms = this.device.kind === 'top' ? 2 : 0;
    return this.device.residentBytes(dimension + rowsOfTerms, rowCount);
  }

  /**
   * Evicts the chunks that were used least recently, as long as the newcomer's last use is later
   * than theirs. So a walk over more than fits keeps a part resident instead of replacing each
   * chunk just before its next use, and a block searched once pushes nothing out.
   */
  private makeRoom(bytes: number, newcomerLastUse: number): boolean {
    while (this.bytesUsed + bytes > this.bytesMax) {
      let victim: { cached: CachedBlock; chunk: Chunk } | null = null;
      for (const cached of this.blocks.values()) {
        for (const chunk of cached.chunks) {
          if (chunk === undefined || chunk.matrix === null) continue;
          if (chunk.lastUse >= (victim?.chunk.lastUse ?? newcomerLastUse)) continue;
          victim = { cached, chunk };
        }
      }
      if (victim === null) return false;
      this.evict(victim.cached, victim.chunk);
    }
    return true;
  }

  private evict(cached: CachedBlock, chunk: Chunk): void {
    if (chunk.matrix === null) return;
    const bytes = this.bytesOf(chunk.matrix.rowCount, chunk.matrix.columnCount);
    chunk.matrix.dispose();
    chunk.matrix = null;
    chunk.terms?.dispose();
    chunk.terms = null;
    cached.residentBytes -= bytes;
    this.account(cached, -bytes);
  }

  /** Facts count against the budget, too: those of other blocks without a resident chunk go first. */
  private forgetIdleBlocks(): void {
    if (this.bytesUsed <= this.bytesMax) return;
    const idle = [...this.blocks.values()]
      .filter((cached) => cached.residentBytes === 0 && cached.lastUse !== this.search)
      .sort((left, right) => left.lastUse - right.lastUse);
    for (const cached of idle) {
      if (this.bytesUsed <= this.bytesMax) return;
      this.unload(cached.key);
    }
  }

  private account(cached: CachedBlock, bytes: number): void {
    if (bytes === 0) return;
    this.bytesUsed += bytes;
    this.changedKeys.add(cached.key);
  }
}

function createCachedBlock(
  { key, dimension }: VectorBlock,
  { chunkValuesMax, chunkRowsMax }: MatrixDevice,
): CachedBlock {
  const rowCount = Math.floor(chunkValuesMax / dimension / 64) * 64;
  const chunkRowCount = Math.min(chunkRowsMax, Math.max(64, rowCount));
  return { key, facts: new BlockNorms(), chunkRowCount, chunks: [], lastUse: 0, residentBytes: 0 };
}

/** The rows from..to as the left operand [rows, dimension], scaled; a view where no row needs scaling. */
export function scaledRows(
  block: VectorBlock,
  facts: BlockNorms,
  from: number,
  to: number,
): Float32Array {
  const { values, dimension } = block;
  const view = values.subarray(from * dimension, to * dimension);
  let copy: Float32Array | null = null;
  for (let row = from; row < to; row++) {
    const scale = rowScale(facts.squares[row]!);
    if (scale === 1) continue;
    copy ??= Float32Array.from(view);
    const start = (row - from) * dimension;
    for (let i = start; i < start + dimension; i++) copy[i]! *= scale;
  }
  return copy ?? view;
}

/** Writes rows as the right operand [dimension, rowCount], scaled, into `transposed`. */
function transposeRows(
  { values, dimension }: VectorBlock,
  facts: BlockNorms,
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
    const scale = rowScale(facts.squares[firstRow + i]!);
    if (scale === 1) continue;
    for (let column = 0; column < dimension; column++) {
      transposed[column * rowCount + i]! *= scale;
    }
  }
}
