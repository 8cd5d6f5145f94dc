// Which rows stay on the device. A block is cut into chunks of equal row count; a full chunk may be
// resident, as the transposed right operand [dimension, rows] that products want. What has no room
// is scored from the block's own values, and what is left at the end of a block, too, so that a
// block that grows never makes a resident chunk stale.

import type { VectorBlock } from '../types.js';
import { BlockFacts } from './block-facts.js';
import type { DeviceMatrix, MatrixDevice } from './matrix-device.js';
import { rowScale } from './scaling.js';

/** Values in a chunk: 4 MiB is enough to hide the cost of a call, and stays in the caches while a batch passes. */
const CHUNK_VALUES = 2 ** 20;

/** Rows in a chunk: products of 256 queries with it are 16 MiB. */
const CHUNK_ROWS_MAX = 16_384;

/** Rows transposed at once: their cache lines stay in the L1 cache. */
const TRANSPOSED_ROWS = 8;

interface Chunk {
  matrix: DeviceMatrix | null;
  /** The search that used it last, resident or not; 0 when none did. */
  lastUse: number;
}

export interface CachedBlock {
  readonly key: string;
  readonly facts: BlockFacts;
  readonly chunkRowCount: number;
  readonly chunks: Chunk[];
  /** The search that used it last. */
  lastUse: number;
  residentBytes: number;
}

export class BlockCache {
  private readonly device: MatrixDevice;
  private readonly bytesMax: number;
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
      cached = createCachedBlock(block);
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
   * The resident matrix [dimension, chunkRowCount] of a chunk, loaded if the block fills the chunk
   * and there is room; else null. It may have more rows than an older view of the block.
   */
  matrixOf(cached: CachedBlock, block: VectorBlock, chunkIndex: number): DeviceMatrix | null {
    cached.chunks[chunkIndex] ??= { matrix: null, lastUse: 0 };
    const chunk = cached.chunks[chunkIndex]!;
    const isFull = (chunkIndex + 1) * cached.chunkRowCount <= block.rowCount;
    if (chunk.matrix === null && isFull) this.admit(cached, chunk, block, chunkIndex);
    chunk.lastUse = this.search;
    return chunk.matrix;
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

  /** The bytes kept for each block whose bytes have changed since the last call. */
  takeChanges(): { key: string; bytes: number }[] {
    const changes = [...this.changedKeys].map((key) => {
      const cached = this.blocks.get(key);
      return {
        key,
        bytes: cached === undefined ? 0 : cached.facts.byteCount + cached.residentBytes,
      };
    });
    this.changedKeys.clear();
    return changes;
  }

  private admit(cached: CachedBlock, chunk: Chunk, block: VectorBlock, chunkIndex: number): void {
    const bytes = this.device.residentBytes(block.dimension, cached.chunkRowCount);
    if (!this.makeRoom(bytes, chunk.lastUse)) return;
    const valueCount = block.dimension * cached.chunkRowCount;
    if (this.transposed.length < valueCount) this.transposed = new Float32Array(valueCount);
    const transposed = this.transposed.subarray(0, valueCount);
    transposeChunk(block, cached, chunkIndex, transposed);
    chunk.matrix = this.device.load(transposed, block.dimension, cached.chunkRowCount);
    if (chunk.matrix === null) return;
    cached.residentBytes += bytes;
    this.account(cached, bytes);
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
    const bytes = this.device.residentBytes(chunk.matrix.rowCount, chunk.matrix.columnCount);
    chunk.matrix.dispose();
    chunk.matrix = null;
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

function createCachedBlock({ key, dimension }: VectorBlock): CachedBlock {
  const rowCount = Math.floor(CHUNK_VALUES / dimension / 64) * 64;
  const chunkRowCount = Math.min(CHUNK_ROWS_MAX, Math.max(64, rowCount));
  return { key, facts: new BlockFacts(), chunkRowCount, chunks: [], lastUse: 0, residentBytes: 0 };
}

/** The rows from..to as the left operand [rows, dimension], scaled; a view where no row needs scaling. */
export function scaledRows(
  block: VectorBlock,
  facts: BlockFacts,
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

/** Writes the rows of a chunk as the right operand [dimension, chunkRowCount], scaled, into `transposed`. */
function transposeChunk(
  block: VectorBlock,
  { facts, chunkRowCount }: CachedBlock,
  chunkIndex: number,
  transposed: Float32Array,
): void {
  const { values, dimension } = block;
  const firstRow = chunkIndex * chunkRowCount;
  for (let start = 0; start < chunkRowCount; start += TRANSPOSED_ROWS) {
    for (let column = 0; column < dimension; column++) {
      let from = (firstRow + start) * dimension + column;
      const to = column * chunkRowCount + start;
      for (let i = 0; i < TRANSPOSED_ROWS; i++) {
        transposed[to + i] = values[from]!;
        from += dimension;
      }
    }
  }
  for (let i = 0; i < chunkRowCount; i++) {
    const scale = rowScale(facts.squares[firstRow + i]!);
    if (scale === 1) continue;
    for (let column = 0; column < dimension; column++) {
      transposed[column * chunkRowCount + i]! *= scale;
    }
  }
}
