// The scan of a batch over a block on a device that returns the best columns of a product. For each query,
// every chunk returns the rows with the largest keys; the rows of all chunks are read in one transfer. While a
// row that was not returned may still be in an answer, more rows of its chunk are requested.

import { countBitsBetween } from '../../common/bitmap.js';
import { isDistance, type VectorBlock } from '../../common/types.js';

import type { BlockCache, CachedBlock } from './block-cache.js';
import type { ExactTopKSelector } from './exact-top-k-selector.js';
import type { DeviceMatrix, TopColumns, TopDevice, TopKeys } from './matrix-device.js';
import { QueryOperands } from './query-operands.js';
import type { RowTerms } from './row-terms.js';
import type { RowRange, TensorScan } from './tensor-scan.js';

/** Rows requested in addition to k, so that rows close behind the k-th need no second request. */
const MARGIN_ROWS = 16;

/** The factor by which more rows are requested when queries with different filters share a product. */
const FILTER_MARGIN = 1.25;

/** The factor by which the number of requested rows grows from request to request. */
const WIDENING = 8;

/** If at least one row in this many is requested, all rows are. */
const ROWS_PER_REQUESTED_ROW_MIN = 4;

/** Keys (8 bytes each) that may wait on the device to be read, unless one product has more. */
const WAITING_KEYS_MAX = 2 ** 24;

/** Groups of queries whose operands are kept on the device. */
const GROUPS_KEPT = 8;

/** A resident chunk, from its first row on. */
interface ResidentChunk {
  readonly firstRow: number;
  readonly matrix: DeviceMatrix;
  readonly terms: RowTerms;
}

/** A query's request for rows of a chunk beyond those it has already received. */
interface TopKRequest {
  readonly selection: ExactTopKSelector;
  readonly countMin: number;
  readonly seen: ReadonlySet<number> | null;
}

/** A product that has not been read: `count` rows for each request. */
interface PendingProduct {
  readonly chunk: ResidentChunk;
  readonly requests: readonly TopKRequest[];
  readonly count: number;
  readonly top: TopColumns;
}

/** A request that may not have received all rows of the answer yet. */
interface OpenRequest {
  readonly chunk: ResidentChunk;
  readonly request: TopKRequest;
  readonly count: number;
  readonly lastKey: number;
  /** The columns received for this request. */
  readonly columns: Float32Array;
}

/** Queries whose operands are on the device. */
interface QueryGroup {
  readonly selections: readonly ExactTopKSelector[];
  readonly operands: QueryOperands;
  /** [queries, 1]: the scales of the queries; null until they are needed. */
  scales: DeviceMatrix | null;
}

export class TopScan implements TensorScan {
  readonly #device: TopDevice;
  readonly #cache: BlockCache;
  readonly #block: VectorBlock;
  readonly #cached: CachedBlock;
  #groups: QueryGroup[] = [];
  #waiting: PendingProduct[] = [];
  #waitingKeyCount = 0;
  #open: OpenRequest[] = [];

  constructor(device: TopDevice, cache: BlockCache, block: VectorBlock, cached: CachedBlock) {
    this.#device = device;
    this.#cache = cache;
    this.#block = block;
    this.#cached = cached;
  }

  scan(
    { from, to }: RowRange,
    scanned: readonly ExactTopKSelector[],
  ): 'scanned' | 'unsuited' | 'no room' {
    const cached = this.#cached;
    const resident = this.#cache.residentOf(cached, this.#block, from / cached.chunkRowCount);
    if (typeof resident === 'string') return resident;
    const { matrix, terms } = resident;
    const chunk = { firstRow: from, matrix, terms: terms! };
    const requests: TopKRequest[] = [];
    for (const selection of scanned) {
      if (!selection.hasKeys) {
        selection.score(from, to);
        continue;
      }
      for (const row of chunk.terms.outlierRows) selection.score(row, row + 1);
      // These rows were added to the block after the chunk was loaded.
      selection.score(from + matrix.columnCount, to);
      requests.push({ selection, countMin: 0, seen: null });
    }
    return this.#request(chunk, requests) ? 'scanned' : this.#giveUp();
  }

  finish(): boolean {
    if (!this.#read()) return false;
    while (this.#open.length > 0) {
      if (!this.#widen() || !this.#read()) return false;
    }
    return true;
  }

  dispose(): void {
    for (const { top } of this.#waiting) top.dispose();
    this.#waiting = [];
    for (const group of this.#groups) disposeGroup(group);
    this.#groups = [];
  }

  /** Frees room for the next batch, because the device has less memory than expected. */
  #giveUp(): 'no room' {
    this.#cache.shrink();
    return 'no room';
  }

  /** Starts the products of the requests. Returns false when there is no room. */
  #request(chunk: ResidentChunk, requests: readonly TopKRequest[]): boolean {
    for (const metric of new Set(requests.map(({ selection }) => selection.query.metric))) {
      const ofMetric = requests.filter(({ selection }) => selection.query.metric === metric);
      const selections = ofMetric.map(({ selection }) => selection);
      const { firstRow, matrix } = chunk;
      const rowMask = createRowMask(selections, firstRow, matrix.columnCount);
      const mask = rowMask && this.#device.load(rowMask.values, 1, matrix.columnCount);
      if (rowMask !== null && mask === null) return false;
      try {
        const wantedCount = rowMask?.wantedCount ?? matrix.columnCount;
        for (const { members, count } of groupByCount(ofMetric, chunk, wantedCount)) {
          if (!this.#multiply(chunk, members, count, mask)) return false;
        }
      } finally {
        mask?.dispose();
      }
    }
    return this.#waitingKeyCount <= WAITING_KEYS_MAX || this.#read();
  }

  #multiply(
    chunk: ResidentChunk,
    requests: readonly TopKRequest[],
    count: number,
    mask: DeviceMatrix | null,
  ): boolean {
    const { terms, matrix } = chunk;
    const selections = requests.map(({ selection }) => selection);
    const { metric } = selections[0]!.query;
    const group = this.#groupOf(selections);
    const left = group.operands.asRows(selections);
    if (left === null) return false;
    if (isDistance(metric)) group.scales ??= this.#loadColumn(selections.map((s) => s.scale));
    if (isDistance(metric) && group.scales === null) return false;
    const isPaged = selections.some(({ query }) => query.after !== null);
    const caps = isPaged ? this.#loadColumn(selections.map((s) => capOf(s, terms))) : null;
    if (isPaged && caps === null) return false;
    const weights = metric === 'cosine' ? terms.weights : null;
    const biases = isDistance(metric) ? terms.biases : null;
    const keyTerms = { weights, biases, biasScales: biases && group.scales, mask, caps };
    const top = this.#device.topColumns(left, matrix, keyTerms, count);
    caps?.dispose();
    if (top === null) return false;
    this.#waiting.push({ chunk, requests, count, top });
    this.#waitingKeyCount += requests.length * count;
    return true;
  }

  /** Reads all waiting products and collects their rows. Returns false when there is no room. */
  #read(): boolean {
    const waiting = this.#waiting;
    if (waiting.length === 0) return true;
    const read = this.#device.read(waiting.map(({ top }) => top));
    if (read === null) {
      this.#giveUp();
      return false;
    }
    this.#waiting = [];
    this.#waitingKeyCount = 0;
    for (const [index, product] of waiting.entries()) collect(product, read[index]!);
    // Runs after all chunks have raised the thresholds.
    for (const [index, product] of waiting.entries()) {
      this.#open.push(...openRequests(product, read[index]!));
    }
    return true;
  }

  /** Requests more rows where unseen rows may be in the answer. Returns false when there is no room. */
  #widen(): boolean {
    const open = this.#open;
    this.#open = [];
    for (const { request } of open) request.selection.rescore();
    const chunks = new Map<ResidentChunk, TopKRequest[]>();
    for (const { chunk, request, count, lastKey, columns } of open) {
      if (request.selection.isBelow(lastKey, chunk.terms.lengthMax)) continue;
      const seen = new Set(request.seen);
      for (const column of columns) seen.add(column);
      const requests = chunks.get(chunk) ?? [];
      requests.push({ selection: request.selection, countMin: count * WIDENING, seen });
      chunks.set(chunk, requests);
    }
    for (const [chunk, requests] of chunks) {
      if (this.#request(chunk, requests)) continue;
      this.#giveUp();
      return false;
    }
    return true;
  }

  #groupOf(selections: readonly ExactTopKSelector[]): QueryGroup {
    const known = this.#groups.find(
      (group) =>
        group.selections.length === selections.length &&
        group.selections.every((selection, index) => selection === selections[index]),
    );
    if (known !== undefined) return known;
    const operands = new QueryOperands(this.#device, this.#block.dimension);
    const group = { selections, operands, scales: null };
    this.#groups.push(group);
    if (this.#groups.length > GROUPS_KEPT) disposeGroup(this.#groups.shift()!);
    return group;
  }

  #loadColumn(values: readonly number[]): DeviceMatrix | null {
    return this.#device.load(Float32Array.from(values), values.length, 1);
  }
}

function disposeGroup({ operands, scales }: QueryGroup): void {
  operands.dispose();
  scales?.dispose();
}

/** Groups requests for similar numbers of rows; each gets the largest number of its group. */
function groupByCount(
  requests: readonly TopKRequest[],
  { firstRow, matrix }: ResidentChunk,
  wantedCount: number,
): { members: TopKRequest[]; count: number }[] {
  const rowCount = matrix.columnCount;
  const groups = new Map<number, { members: TopKRequest[]; count: number }>();
  for (const request of requests) {
    const { query } = request.selection;
    const end = Math.min(query.rowCount, firstRow + rowCount);
    const passingCount =
      query.rows === null ? end - firstRow : countBitsBetween(query.rows, firstRow, end);
    if (passingCount <= 0) continue;
    // The share of rows that pass the query's filter among those that the product chooses from.
    const share = Math.min(1, passingCount / wantedCount);
    const margin = share < 1 ? FILTER_MARGIN : 1;
    const wanted = ((Math.min(query.k, passingCount) + MARGIN_ROWS) / share) * margin;
    let count = Math.min(rowCount, Math.ceil(Math.max(wanted, request.countMin)));
    if (count * ROWS_PER_REQUESTED_ROW_MIN >= rowCount) count = rowCount;
    const magnitude = Math.ceil(Math.log2(count) / 2);
    const group = groups.get(magnitude) ?? { members: [], count: 0 };
    group.members.push(request);
    group.count = Math.max(group.count, count);
    groups.set(magnitude, group);
  }
  return [...groups.values()];
}

/** Returns `keyCap` with a margin for rounding to float32. */
function capOf(selection: ExactTopKSelector, { lengthMax }: RowTerms): number {
  const cap = selection.keyCap(lengthMax);
  return cap + Math.abs(cap) * 2 ** -22 + 2 ** -120;
}

function collect({ chunk, requests, count }: PendingProduct, { columns, keys }: TopKeys): void {
  const { firstRow, terms } = chunk;
  for (const [index, { selection, seen }] of requests.entries()) {
    const rows: number[] = [];
    const rowKeys: number[] = [];
    for (let i = index * count; i < (index + 1) * count; i++) {
      if (keys[i] === Number.NEGATIVE_INFINITY) break;
      const row = firstRow + columns[i]!;
      if (terms.isOutlier(row) || seen?.has(columns[i]!)) continue;
      rows.push(row);
      rowKeys.push(keys[i]!);
    }
    selection.collectKeyed({ rows, keys: rowKeys, lengthMax: terms.lengthMax });
  }
}

function openRequests(
  { chunk, requests, count }: PendingProduct,
  { columns, keys }: TopKeys,
): OpenRequest[] {
  if (count === chunk.matrix.columnCount) return [];
  return requests.flatMap((request, index) => {
    const lastKey = keys[(index + 1) * count - 1]!;
    const isCertain =
      lastKey === Number.NEGATIVE_INFINITY ||
      request.selection.isBelow(lastKey, chunk.terms.lengthMax);
    if (isCertain) return [];
    const seen = columns.slice(index * count, (index + 1) * count);
    return [{ chunk, request, count, lastKey, columns: seen }];
  });
}

interface RowMask {
  /** [rowCount] float32: 0 for rows that some query searches, −Infinity for the others. */
  readonly values: Float32Array;
  readonly wantedCount: number;
}

/**
 * Creates the mask of the rows of a chunk that any query searches, to be added to keys. `firstRow` is a
 * multiple of 32. Returns null when some query searches all rows.
 */
function createRowMask(
  selections: readonly ExactTopKSelector[],
  firstRow: number,
  rowCount: number,
): RowMask | null {
  const end = firstRow + rowCount;
  const wanted = new Uint32Array((rowCount + 31) >>> 5);
  const seen = new Map<Uint32Array, number>();
  for (const { query } of selections) {
    const to = Math.min(query.rowCount, end);
    if (to <= firstRow) continue;
    const words = query.rows?.words ?? null;
    if (words === null && to === end) return null;
    // Queries with the same filter share a bitmap.
    if (words !== null && (seen.get(words) ?? 0) >= to) continue;
    if (words !== null) seen.set(words, to);
    addWords(wanted, words, firstRow, to);
  }
  const values = new Float32Array(rowCount).fill(Number.NEGATIVE_INFINITY);
  let wantedCount = 0;
  for (let i = 0; i < rowCount; i++) {
    if (((wanted[i >>> 5]! >>> (i & 31)) & 1) === 0) continue;
    values[i] = 0;
    wantedCount++;
  }
  return { values, wantedCount };
}

/** Sets the bits of the rows from..to that are set in `words`, or all of them if it is null. */
function addWords(wanted: Uint32Array, words: Uint32Array | null, from: number, to: number): void {
  const firstWord = from >>> 5;
  const lastWord = (to - 1) >>> 5;
  for (let word = firstWord; word <= lastWord; word++) {
    const rows = word === lastWord ? 0xffffffff >>> (31 - ((to - 1) & 31)) : 0xffffffff;
    wanted[word - firstWord]! |= (words === null ? 0xffffffff : words[word]!) & rows;
  }
}
