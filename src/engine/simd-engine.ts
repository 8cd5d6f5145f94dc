// The `simd` engine: a certified int8 scan in the threads of the pool, through the kernels. A batch
// becomes one native search over all its blocks; each thread takes pieces of it until none is left,
// and what the threads share, thresholds above all, they share inside the kernels.

import { assert } from '../errors.js';
import type { Task, WorkerPool } from '../pool.js';
import { METRICS, type RowEncoder, type UnencodedRows, type VectorBlock } from '../types.js';
import type { Engine, SearchHits, SearchQuery } from './engine.js';
import { scoreFloor } from './order.js';
import { cutByHits } from './per-block.js';
import { type KernelBatch, type KernelHits, type Kernels, loadKernels } from './simd-kernels.js';

/** Hits that the queries of one native search may hold: some 40 bytes each and thread while it runs. */
const HITS_MAX = 2 ** 19;

/** What is cheaper than handing it to another thread is done at once, on the calling one. */
const INLINE_COST_NS = 40_000;

/** Work that is worth a second thread. */
const SHARED_COST_NS = 100_000;

/** Rows that are encoded in one task of the pool: a few milliseconds. */
const ENCODED_VALUES = 2 ** 21;

/** Works on a search until nothing is left to take; true when that completed it. */
export const workSimdTask: Task<number, boolean> = {
  name: 'engine.workSimd',
  run: (ticket) => loadKernels().work(ticket),
};

/** Makes the codes of rows, in shared memory, where they are. */
export const encodeSimdTask: Task<UnencodedRows, null> = {
  name: 'engine.encodeSimd',
  run(rows) {
    encodeRows(loadKernels(), rows);
    return null;
  },
};

/** Throws where the addon is not built, or the processor does not have the target that is asked for. */
export function createSimdEngine(options: { pool: WorkerPool; target?: string | null }): Engine {
  const kernels = loadKernels();
  if (options.target != null) selectTarget(kernels, options.target);
  return new SimdEngine(kernels, options.pool);
}

/** What the kernels run on, in words for an operator. */
export function describeSimd(): string {
  return `int8 kernels for ${loadKernels().selectedTarget()}`;
}

function selectTarget(kernels: Kernels, target: string): void {
  const known = kernels.targets();
  if (!known.includes(target)) {
    throw new Error(`this processor does not have ${target}; it has ${known.join(', ')}`);
  }
  kernels.selectTarget(target);
}

class SimdEngine implements Engine {
  readonly name = 'simd';
  readonly rowEncoder: RowEncoder;
  readonly #kernels: Kernels;
  readonly #pool: WorkerPool;
  /** Searches under way, and the arrays that their threads read: nothing else keeps those alive. */
  readonly #running = new Map<number, KernelBatch>();
  #isClosed = false;

  constructor(kernels: Kernels, pool: WorkerPool) {
    this.#kernels = kernels;
    this.#pool = pool;
    this.rowEncoder = createRowEncoder(kernels, pool);
  }

  async search(
    queries: readonly SearchQuery[],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SearchHits[]> {
    assert(!this.#isClosed, 'an engine is not used after it is closed');
    signal?.throwIfAborted();
    const answers = new Array<SearchHits>(queries.length);
    for (const [dimension, places] of groupByDimension(queries)) {
      const bounds = {
        hitsMax: HITS_MAX,
        hitsMaxOf: (place: number) => countHitsMax(queries[place]!),
      };
      for (const slice of cutByHits(places, bounds)) {
        const batch = packBatch(
          slice.map((place) => queries[place]!),
          dimension,
          this.#pool.threadCount,
        );
        const hits = await this.#run(batch, signal);
        for (const [i, place] of slice.entries()) answers[place] = sliceHits(hits, i);
      }
    }
    return answers;
  }

  async #run(batch: KernelBatch, signal: AbortSignal | undefined): Promise<KernelHits> {
    const kernels = this.#kernels;
    const ticket = kernels.createSearch(batch);
    this.#running.set(ticket, batch);
    const cost = kernels.cost(ticket);
    if (cost <= INLINE_COST_NS) {
      try {
        assert(kernels.work(ticket), 'one thread alone ends a search');
        return kernels.takeHits(ticket);
      } finally {
        this.#release(ticket);
      }
    }
    const onAbort = () => kernels.cancel(ticket);
    signal?.addEventListener('abort', onAbort);
    const wanted = Math.min(this.#pool.threadCount, Math.ceil(cost / SHARED_COST_NS));
    const workers = Array.from({ length: wanted }, () => this.#pool.run(workSimdTask, ticket));
    try {
      await firstTrue(workers);
      signal?.throwIfAborted();
      return kernels.takeHits(ticket);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      // A thread that comes late finds no ticket; one that is at work still reads the arrays.
      kernels.cancel(ticket);
      Promise.allSettled(workers).then(() => this.#release(ticket));
    }
  }

  #release(ticket: number): void {
    this.#kernels.release(ticket);
    this.#running.delete(ticket);
  }

  unload(): void {}

  bytesUsed() {
    return { hostBytes: 0, deviceBytes: 0 };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }
}

/** Resolves with the first promise that gives true; rejects with the first that rejects. */
function firstTrue(promises: readonly Promise<boolean>[]): Promise<void> {
  return new Promise((resolve, reject) => {
    for (const promise of promises) {
      promise.then((isDone) => {
        if (isDone) resolve();
      }, reject);
    }
  });
}

function groupByDimension(queries: readonly SearchQuery[]): Map<number, number[]> {
  const places = new Map<number, number[]>();
  for (const [place, { vector }] of queries.entries()) {
    const group = places.get(vector.length);
    if (group === undefined) places.set(vector.length, [place]);
    else group.push(place);
  }
  return places;
}

function countHitsMax({ k, parts }: SearchQuery): number {
  let rowCount = 0;
  for (const part of parts) rowCount += part.rowCount;
  return Math.min(k, rowCount);
}

/** Columns over all queries. Blocks and bitmaps that queries share are named once. */
function packBatch(
  queries: readonly SearchQuery[],
  dimension: number,
  workerCount: number,
): KernelBatch {
  const count = queries.length;
  const partCount = queries.reduce((sum, { parts }) => sum + parts.length, 0);
  const afterByteCount = queries.reduce((sum, { after }) => sum + (after?.id.length ?? 0), 0);
  const batch = {
    dimension,
    workerCount,
    blocks: [] as KernelBatch['blocks'][number][],
    bitmaps: [] as Uint32Array[],
    parts: new Uint32Array(3 * partCount),
    vectors: new Float32Array(count * dimension),
    metrics: new Uint8Array(count),
    ks: new Uint32Array(count),
    floors: new Float64Array(count),
    afterScores: new Float64Array(count),
    afterOffsets: new Uint32Array(count + 1),
    afterIds: new Uint8Array(afterByteCount),
    partOffsets: new Uint32Array(count + 1),
  };
  const blockPlaces = new Map<string, number>();
  const bitmapPlaces = new Map<Uint32Array, number>();
  let partAt = 0;
  let afterAt = 0;
  for (const [index, { vector, metric, k, parts, after, scoreMin }] of queries.entries()) {
    batch.vectors.set(vector, index * dimension);
    batch.metrics[index] = METRIC_NUMBERS[metric];
    batch.ks[index] = k;
    batch.floors[index] = scoreFloor(metric, scoreMin);
    if (after !== null) {
      batch.afterScores[index] = after.score;
      batch.afterIds.set(after.id, afterAt);
      afterAt += after.id.length;
    }
    batch.afterOffsets[index + 1] = afterAt;
    for (const { block, rowCount, rows } of parts) {
      assert(block.dimension === dimension, 'a query has the dimension of its blocks');
      const place = placeOf(blockPlaces, block.key, () => batch.blocks.push(toKernel(block)));
      // Of two views of a block, the one with more rows serves the queries of both.
      if (block.rowCount > batch.blocks[place]!.rowCount) batch.blocks[place] = toKernel(block);
      batch.parts[partAt++] = place;
      batch.parts[partAt++] = rowCount;
      batch.parts[partAt++] =
        rows === null
          ? 0
          : 1 + placeOf(bitmapPlaces, rows.words, () => batch.bitmaps.push(rows.words));
    }
    batch.partOffsets[index + 1] = partAt / 3;
  }
  return batch;
}

const METRIC_NUMBERS = Object.fromEntries(
  METRICS.map((metric, index) => [metric, index]),
) as Record<(typeof METRICS)[number], number>;

function placeOf<Key>(places: Map<Key, number>, key: Key, add: () => void): number {
  let place = places.get(key);
  if (place === undefined) {
    place = places.size;
    places.set(key, place);
    add();
  }
  return place;
}

function toKernel({ rowCount, values, codes, ids }: VectorBlock): KernelBatch['blocks'][number] {
  return { rowCount, values, codes, idOffsets: ids.offsets, idBytes: ids.bytes };
}

function sliceHits(hits: KernelHits, index: number): SearchHits {
  const from = hits.offsets[index]!;
  const to = hits.offsets[index + 1]!;
  return {
    parts: hits.parts.subarray(from, to),
    rows: hits.rows.subarray(from, to),
    scores: hits.scores.subarray(from, to),
    scannedCount: hits.scannedCounts[index]!,
    rescoredCount: hits.rescoredCounts[index]!,
  };
}

function createRowEncoder(kernels: Kernels, pool: WorkerPool): RowEncoder {
  return {
    byteLength: (rowCount, dimension) => kernels.codesByteLength(rowCount, dimension),
    allocate(byteLength) {
      const whole = new Uint8Array(new SharedArrayBuffer(byteLength + ALIGNMENT_BYTES));
      const offset = kernels.alignmentOffset(whole);
      return whole.subarray(offset, offset + byteLength);
    },
    encode: (rows) => encodeRows(kernels, rows),
    async encodeAll({ from, to, ...rows }) {
      const step = Math.max(1, Math.floor(ENCODED_VALUES / rows.dimension));
      const tasks: Promise<null>[] = [];
      for (let at = from; at < to; at += step) {
        const piece = { ...rows, from: at, to: Math.min(at + step, to) };
        tasks.push(pool.run(encodeSimdTask, piece));
      }
      await Promise.all(tasks);
    },
  };
}

/** A cache line: loads of codes then never straddle two. */
const ALIGNMENT_BYTES = 64;

function encodeRows(kernels: Kernels, { values, dimension, from, to, codes }: UnencodedRows): void {
  kernels.encode(values, dimension, from, to, codes);
}
