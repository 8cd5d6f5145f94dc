// Collects the matches of a join as columns in chunks of half a megabyte. A row with many matches
// may continue in the next chunk.

import { isDistance, type Metric, type Utf8Column } from '../../common/types.js';
import { distanceOf, publicScore } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';
import { toFloat32 } from '../search/hits.js';

/** Rows in order of arrival, with their matches, best first. */
export interface JoinChunk {
  readonly rowCount: number;
  /** The ids of the rows. */
  readonly ids: Utf8Column;
  /** Row i has the matches `offsets[i]..offsets[i + 1]`. */
  readonly offsets: Int32Array;
  /** The number of matches of the first row in earlier chunks. */
  readonly precedingMatchCount: number;
  /** Whether the first row began in an earlier chunk. */
  readonly isContinued: boolean;
  /** Whether the last row continues in the next chunk. */
  readonly isOpen: boolean;
  readonly matchCount: number;
  readonly matchIds: Utf8Column;
  /** Rounded to float32. */
  readonly scores: Float32Array;
  /** L2 distances; null for metrics other than euclidean. */
  readonly distances: Float32Array | null;
  /** JSON texts as sent; null unless requested. */
  readonly metadata: Utf8Column | null;
}

/** Bytes of all columns of a chunk, which the last match may exceed. */
export const JOIN_CHUNK_BYTES = 512 * 1024;

/** Collects rows and matches until a chunk is full. */
export class JoinChunkBuilder {
  readonly #metric: Metric;
  readonly #withMetadata: boolean;
  #ids = new TextColumn();
  #matchIds = new TextColumn();
  #metadata: TextColumn | null = null;
  #numbers = new NumberColumn();
  #offsets: number[] = [0];
  #precedingMatchCount = 0;
  #isContinued = false;
  /** Matches of the last row so far, including those in earlier chunks. */
  #rank = 0;

  constructor(options: { readonly metric: Metric; readonly includeMetadata: boolean }) {
    this.#metric = options.metric;
    this.#withMetadata = options.includeMetadata;
    this.#clear();
  }

  get isFull(): boolean {
    const textBytes = this.#ids.byteLength + this.#matchIds.byteLength;
    const metadataBytes = this.#metadata?.byteLength ?? 0;
    return textBytes + metadataBytes + this.#numbers.length * 12 >= JOIN_CHUNK_BYTES;
  }

  /** Matches of the last row so far. */
  get rank(): number {
    return this.#rank;
  }

  beginRow({ metadata: { ids } }: SegmentView, row: number): void {
    this.#ids.add(ids, row);
    this.#offsets.push(this.#numbers.length);
    this.#rank = 0;
  }

  /** @param score the score of the engine. */
  addMatch({ metadata: { ids, json } }: SegmentView, row: number, score: number): void {
    this.#matchIds.add(ids, row);
    this.#metadata?.add(json, row);
    this.#numbers.add(score);
    this.#offsets[this.#offsets.length - 1] = this.#numbers.length;
    this.#rank++;
  }

  /** Takes the chunk collected so far; null if it is empty. `isOpen` means that the last row will get more matches. */
  take(isOpen: boolean): JoinChunk | null {
    const rowCount = this.#offsets.length - 1;
    if (rowCount === 0) return null;
    const ids = this.#ids.take();
    const scores = this.#numbers.take();
    const metric = this.#metric;
    const chunk: JoinChunk = {
      rowCount,
      ids,
      offsets: Int32Array.from(this.#offsets),
      precedingMatchCount: this.#precedingMatchCount,
      isContinued: this.#isContinued,
      isOpen,
      matchCount: scores.length,
      matchIds: this.#matchIds.take(),
      scores: Float32Array.from(scores, (score) => toFloat32(publicScore(metric, score))),
      distances: isDistance(metric)
        ? Float32Array.from(scores, (score) => toFloat32(distanceOf(metric, score)))
        : null,
      metadata: this.#metadata?.take() ?? null,
    };
    const rank = this.#rank;
    this.#clear();
    if (isOpen) {
      this.#ids.add(ids, rowCount - 1);
      this.#offsets.push(0);
      this.#precedingMatchCount = rank;
      this.#isContinued = true;
      this.#rank = rank;
    }
    return chunk;
  }

  #clear(): void {
    this.#ids = new TextColumn();
    this.#matchIds = new TextColumn();
    this.#metadata = this.#withMetadata ? new TextColumn() : null;
    this.#numbers = new NumberColumn();
    this.#offsets = [0];
    this.#precedingMatchCount = 0;
    this.#isContinued = false;
    this.#rank = 0;
  }
}

/** Up to this length, a loop is faster than creating and copying a view. */
const LOOPED_BYTES_MAX = 48;

/** A growing column of strings copied from other columns. */
export class TextColumn {
  byteLength = 0;
  #count = 0;
  #offsets = new Int32Array(1_024);
  #bytes = new Uint8Array(16_384);

  add({ offsets, bytes }: Utf8Column, row: number): void {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const at = this.byteLength;
    this.byteLength += end - start;
    if (this.byteLength > this.#bytes.length) {
      this.#bytes = enlarged(this.#bytes, Math.max(this.byteLength, this.#bytes.length * 2));
    }
    if (end - start <= LOOPED_BYTES_MAX) {
      const target = this.#bytes;
      for (let i = start, to = at; i < end; i++, to++) target[to] = bytes[i]!;
    } else {
      this.#bytes.set(bytes.subarray(start, end), at);
    }
    this.#count++;
    if (this.#count === this.#offsets.length) {
      this.#offsets = enlarged(this.#offsets, this.#count * 2);
    }
    this.#offsets[this.#count] = this.byteLength;
  }

  take(): Utf8Column {
    return {
      offsets: this.#offsets.subarray(0, this.#count + 1),
      bytes: this.#bytes.subarray(0, this.byteLength),
    };
  }
}

class NumberColumn {
  length = 0;
  #numbers = new Float64Array(1_024);

  add(value: number): void {
    if (this.length === this.#numbers.length) {
      this.#numbers = enlarged(this.#numbers, this.length * 2);
    }
    this.#numbers[this.length++] = value;
  }

  take(): Float64Array {
    return this.#numbers.subarray(0, this.length);
  }
}

function enlarged<T extends Uint8Array | Int32Array | Float64Array>(array: T, length: number): T {
  const copy = new (array.constructor as new (length: number) => T)(length);
  copy.set(array);
  return copy;
}
