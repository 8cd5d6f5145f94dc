// One batch over one block on a device that hands out the best columns of a product instead of the
// product: each chunk gives each query the rows with the largest keys, all of them come in one
// transfer, and where a row that stayed behind may still be in an answer, more are asked for.

import { countBitsBetween } from '../../common/bitmap.js';
import type { VectorBlock } from '../../common/types.js';
import type { ExactTopKSelector } from '../core/exact-top-k-selector.js';
import { createRowMask } from '../core/row-mask.js';
import type { BlockCache, CachedBlock } from './block-cache.js';
import type { DeviceMatrix, TopColumns, TopDevice, TopKeys } from './matrix-device.js';
import type { RowTerms } from './row-terms.js';
import { QueryOperands } from './tensor-operands.js';
import type { RowRange, TensorScan } from './tensor-scan.js';

/** Asked for beside k, so that what is close behind the k-th row need not be asked for later. */
const MARGIN_ROWS = 16;

/** Where queries with different filters share a product, some ask for more than they would have to. */
const FILTER_MARGIN = 1.25;

/** How many times as many rows are asked for the next time. */
const WIDENING = 8;

/** When one row in this many is asked for, all are. */
const ROWS_PER_ASKED_ROW_MIN = 4;

/** Keys that wait on the device at most before they are read, 8 bytes each, unless one product has more. */
const WAITING_KEYS_MAX = 2 ** 24;

/** Groups of queries whose operands are kept on the device. */
const GROUPS_KEPT = 8;

/** A resident chunk, from its first row on. */
interface ChunkRows {
  readonly firstRow: number;
  readonly matrix: DeviceMatrix;
  readonly terms: RowTerms;
}

/** A query that wants rows of a chunk beside those that it has had. */
interface Wish {
  readonly selection: ExactTopKSelector;
  readonly countMin: number;
  readonly had: ReadonlySet<number> | null;
}

/** What one product was asked for: `count` rows for each wish. */
interface Asked {
  readonly chunk: ChunkRows;
  readonly wishes: readonly Wish[];
  readonly count: number;
  readonly top: TopColumns;
}

/** A wish that is not yet certain to have had all rows that matter. */
interface OpenWish {
  readonly chunk: ChunkRows;
  readonly wish: Wish;
  readonly count: number;
  readonly lastKey: number;
  /** Columns that it has had now. */
  readonly columns: Float32Array;
}

/** Queries whose operands are on the device. */
interface Group {
  readonly selections: readonly ExactTopKSelector[];
  readonly operands: QueryOperands;
  /** [queries, 1]: the powers of two by which queries are scaled; null until asked for. */
  scales: DeviceMatrix | null;
}

export class TopScan implements TensorScan {
  private readonly device: TopDevice;
  private readonly cache: BlockCache;
  private readonly block: VectorBlock;
  private readonly cached: CachedBlock;
  private groups: Group[] = [];
  private waiting: Asked[] = [];
  private waitingKeyCount = 0;
  private open: OpenWish[] = [];

  constructor(device: TopDevice, cache: BlockCache, block: VectorBlock, cached: CachedBlock) {
    this.device = device;
    this.cache = cache;
    this.block = block;
    this.cached = cached;
  }

  scan(
    { from, to }: RowRange,
    scanned: readonly ExactTopKSelector[],
  ): 'scanned' | 'unsuited' | 'no room' {
    const { cached } = this;
    const resident = this.cache.residentOf(cached, this.block, from / cached.chunkRowCount);
    if (typeof resident === 'string') return resident;
    const { matrix, terms } = resident;
    const chunk = { firstRow: from, matrix, terms: terms! };
    const wishes: Wish[] = [];
    for (const selection of scanned) {
      if (!selection.hasKeys) {
        selection.score(from, to);
        continue;
      }
      for (const row of chunk.terms.oddRows) selection.score(row, row + 1);
      // Rows that the block has gained since the chunk was loaded.
      selection.score(from + matrix.columnCount, to);
      wishes.push({ selection, countMin: 0, had: null });
    }
    return this.ask(chunk, wishes) ? 'scanned' : this.giveUp();
  }

  finish(): boolean {
    if (!this.read()) return false;
    while (this.open.length > 0) {
      if (!this.widen() || !this.read()) return false;
    }
    return true;
  }

  dispose(): void {
    for (const { top } of this.waiting) top.dispose();
    this.waiting = [];
    for (const group of this.groups) disposeGroup(group);
    this.groups = [];
  }

  /** The device has less room than was thought: there will be more for the next batch. */
  private giveUp(): 'no room' {
    this.cache.shrink();
    return 'no room';
  }

  /** Starts the products that the wishes need; false when there is no room. */
  private ask(chunk: ChunkRows, wishes: readonly Wish[]): boolean {
    for (const metric of new Set(wishes.map(({ selection }) => selection.query.metric))) {
      const alike = wishes.filter(({ selection }) => selection.query.metric === metric);
      const selections = alike.map(({ selection }) => selection);
      const { firstRow, matrix } = chunk;
      const rowMask = createRowMask(selections, firstRow, matrix.columnCount);
      const mask = rowMask && this.device.load(rowMask.values, 1, matrix.columnCount);
      if (rowMask !== null && mask === null) return false;
      try {
        const wantedCount = rowMask?.wantedCount ?? matrix.columnCount;
        for (const { members, count } of groupByCount(alike, chunk, wantedCount)) {
          if (!this.multiply(chunk, members, count, mask)) return false;
        }
      } finally {
        mask?.dispose();
      }
    }
    return this.waitingKeyCount <= WAITING_KEYS_MAX || this.read();
  }

  private multiply(
    chunk: ChunkRows,
    wishes: readonly Wish[],
    count: number,
    mask: DeviceMatrix | null,
  ): boolean {
    const { terms, matrix } = chunk;
    const selections = wishes.map(({ selection }) => selection);
    const { metric } = selections[0]!.query;
    const group = this.groupOf(selections);
    const left = group.operands.asRows(selections);
    if (left === null) return false;
    if (metric === 'euclidean') group.scales ??= this.loadColumn(selections.map((s) => s.scale));
    if (metric === 'euclidean' && group.scales === null) return false;
    const isPaged = selections.some(({ query }) => query.after !== null);
    const caps = isPaged ? this.loadColumn(selections.map((s) => capOf(s, terms))) : null;
    if (isPaged && caps === null) return false;
    const weights = metric === 'cosine' ? terms.weights : null;
    const biases = metric === 'euclidean' ? terms.biases : null;
    const keyTerms = { weights, biases, biasScales: biases && group.scales, mask, caps };
    const top = this.device.topColumns(left, matrix, keyTerms, count);
    caps?.dispose();
    if (top === null) return false;
    this.waiting.push({ chunk, wishes, count, top });
    this.waitingKeyCount += wishes.length * count;
    return true;
  }

  /** Reads all that waits and collects it; false when there is no room. */
  private read(): boolean {
    const { waiting } = this;
    if (waiting.length === 0) return true;
    const read = this.device.read(waiting.map(({ top }) => top));
    if (read === null) {
      this.giveUp();
      return false;
    }
    this.waiting = [];
    this.waitingKeyCount = 0;
    for (const [index, asked] of waiting.entries()) collect(asked, read[index]!);
    // Only now, with thresholds that all chunks have raised.
    for (const [index, asked] of waiting.entries())
      this.open.push(...openWishes(asked, read[index]!));
    return true;
  }

  /** Asks for more rows where the answer may still be among the others; false when there is no room. */
  private widen(): boolean {
    const { open } = this;
    this.open = [];
    for (const { wish } of open) wish.selection.rescore();
    const chunks = new Map<ChunkRows, Wish[]>();
    for (const { chunk, wish, count, lastKey, columns } of open) {
      if (wish.selection.isBelow(lastKey, chunk.terms.lengthMax)) continue;
      const had = new Set(wish.had);
      for (const column of columns) had.add(column);
      const wishes = chunks.get(chunk) ?? [];
      wishes.push({ selection: wish.selection, countMin: count * WIDENING, had });
      chunks.set(chunk, wishes);
    }
    for (const [chunk, wishes] of chunks) {
      if (this.ask(chunk, wishes)) continue;
      this.giveUp();
      return false;
    }
    return true;
  }

  private groupOf(selections: readonly ExactTopKSelector[]): Group {
    const known = this.groups.find(
      (group) =>
        group.selections.length === selections.length &&
        group.selections.every((selection, index) => selection === selections[index]),
    );
    if (known !== undefined) return known;
    const operands = new QueryOperands(this.device, this.block.dimension);
    const group = { selections, operands, scales: null };
    this.groups.push(group);
    if (this.groups.length > GROUPS_KEPT) disposeGroup(this.groups.shift()!);
    return group;
  }

  private loadColumn(values: readonly number[]): DeviceMatrix | null {
    return this.device.load(Float32Array.from(values), values.length, 1);
  }
}

function disposeGroup({ operands, scales }: Group): void {
  operands.dispose();
  scales?.dispose();
}

/** Wishes that ask for about as many rows go together; each gets as many as the greediest of them. */
function groupByCount(
  wishes: readonly Wish[],
  { firstRow, matrix }: ChunkRows,
  wantedCount: number,
): { members: Wish[]; count: number }[] {
  const rowCount = matrix.columnCount;
  const groups = new Map<number, { members: Wish[]; count: number }>();
  for (const wish of wishes) {
    const { query } = wish.selection;
    const end = Math.min(query.rowCount, firstRow + rowCount);
    const passingCount =
      query.rows === null ? end - firstRow : countBitsBetween(query.rows, firstRow, end);
    if (passingCount <= 0) continue;
    // Of the rows that the product chooses among, this part is for the query.
    const part = Math.min(1, passingCount / wantedCount);
    const margin = part < 1 ? FILTER_MARGIN : 1;
    const wanted = ((Math.min(query.k, passingCount) + MARGIN_ROWS) / part) * margin;
    let count = Math.min(rowCount, Math.ceil(Math.max(wanted, wish.countMin)));
    if (count * ROWS_PER_ASKED_ROW_MIN >= rowCount) count = rowCount;
    const magnitude = Math.ceil(Math.log2(count) / 2);
    const group = groups.get(magnitude) ?? { members: [], count: 0 };
    group.members.push(wish);
    group.count = Math.max(group.count, count);
    groups.set(magnitude, group);
  }
  return [...groups.values()];
}

/** As `keyCap`, rounded up to float32. */
function capOf(selection: ExactTopKSelector, { lengthMax }: RowTerms): number {
  const cap = selection.keyCap(lengthMax);
  return cap + Math.abs(cap) * 2 ** -22 + 2 ** -120;
}

function collect({ chunk, wishes, count }: Asked, { columns, keys }: TopKeys): void {
  const { firstRow, terms } = chunk;
  for (const [index, { selection, had }] of wishes.entries()) {
    const rows: number[] = [];
    const rowKeys: number[] = [];
    for (let i = index * count; i < (index + 1) * count; i++) {
      if (keys[i] === Number.NEGATIVE_INFINITY) break;
      const row = firstRow + columns[i]!;
      if (terms.isOdd(row) || had?.has(columns[i]!)) continue;
      rows.push(row);
      rowKeys.push(keys[i]!);
    }
    selection.collectKeyed({ rows, keys: rowKeys, lengthMax: terms.lengthMax });
  }
}

function openWishes({ chunk, wishes, count }: Asked, { columns, keys }: TopKeys): OpenWish[] {
  if (count === chunk.matrix.columnCount) return [];
  return wishes.flatMap((wish, index) => {
    const lastKey = keys[(index + 1) * count - 1]!;
    const isCertain =
      lastKey === Number.NEGATIVE_INFINITY ||
      wish.selection.isBelow(lastKey, chunk.terms.lengthMax);
    if (isCertain) return [];
    const had = columns.slice(index * count, (index + 1) * count);
    return [{ chunk, wish, count, lastKey, columns: had }];
  });
}
