// The matches of a join as columns, some megabytes at a time. A row with many matches may go on from
// one piece to the next.

import type { Metric, Utf8Column } from '../../common/types.js';
import { distanceOf, publicScore } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';
import { toFloat32 } from '../query/query.js';

/** Some rows, in order of arrival, and their matches, best first. */
export interface JoinChunk {
  readonly rowCount: number;
  /** Of the rows. */
  readonly ids: Utf8Column;
  /** Row i has the matches `offsets[i]..offsets[i + 1]`. */
  readonly offsets: Int32Array;
  /** How many matches of the first row were in the pieces before; it began there when `isContinued`. */
  readonly precedingMatchCount: number;
  readonly isContinued: boolean;
  /** Whether the last row goes on in the next piece. */
  readonly isOpen: boolean;
  readonly matchCount: number;
  readonly matchIds: Utf8Column;
  /** Rounded to float32. */
  readonly scores: Float32Array;
  /** L2; null for other metrics than euclidean. */
  readonly distances: Float32Array | null;
  /** JSON texts as sent; null unless asked for. */
  readonly metadata: Utf8Column | null;
}

/** Of all columns of a piece together, but for the last match. */
const PIECE_BYTES = 2 * 1024 * 1024;

/** Collects rows and matches until a piece is full. */
export class JoinChunkBuilder {
  readonly #metric: Metric;
  readonly #withMetadata: boolean;
  #ids = new TextColumn();
  #matchIds = new TextColumn();
  #metadata: TextColumn | null = null;
  #numbers = new NumberColumn();
  #offsets: number[] = [0];
  #givenCount = 0;
  #isContinued = false;
  /** Matches of the last row, also in the pieces before. */
  #rank = 0;

  constructor(options: { readonly metric: Metric; readonly includeMetadata: boolean }) {
    this.#metric = options.metric;
    this.#withMetadata = options.includeMetadata;
    this.#clear();
  }

  get isFull(): boolean {
    const textBytes = this.#ids.byteLength + this.#matchIds.byteLength;
    const metadataBytes = this.#metadata?.byteLength ?? 0;
    return textBytes + metadataBytes + this.#numbers.length * 12 >= PIECE_BYTES;
  }

  /** Matches of the row that was begun last. */
  get rank(): number {
    return this.#rank;
  }

  beginRow({ block: { ids } }: SegmentView, row: number): void {
    this.#ids.add(ids, row);
    this.#offsets.push(this.#numbers.length);
    this.#rank = 0;
  }

  /** @param score as the engine gives it. */
  addMatch({ block: { ids }, metadata: { json } }: SegmentView, row: number, score: number): void {
    this.#matchIds.add(ids, row);
    this.#metadata?.add(json, row);
    this.#numbers.add(score);
    this.#offsets[this.#offsets.length - 1] = this.#numbers.length;
    this.#rank++;
  }

  /** What was collected. `isOpen`: the last row has more matches to come. Null for nothing. */
  take(isOpen: boolean): JoinChunk | null {
    const rowCount = this.#offsets.length - 1;
    if (rowCount === 0) return null;
    const ids = this.#ids.taken();
    const scores = this.#numbers.taken();
    const piece: JoinChunk = {
      rowCount,
      ids,
      offsets: Int32Array.from(this.#offsets),
      precedingMatchCount: this.#givenCount,
      isContinued: this.#isContinued,
      isOpen,
      matchCount: scores.length,
      matchIds: this.#matchIds.taken(),
      scores: Float32Array.from(scores, (score) => toFloat32(publicScore(this.#metric, score))),
      distances:
        this.#metric === 'euclidean'
          ? Float32Array.from(scores, (score) => toFloat32(distanceOf(score)))
          : null,
      metadata: this.#metadata?.taken() ?? null,
    };
    const rank = this.#rank;
    this.#clear();
    if (isOpen) {
      this.#ids.add(ids, rowCount - 1);
      this.#offsets.push(0);
      this.#givenCount = rank;
      this.#isContinued = true;
      this.#rank = rank;
    }
    return piece;
  }

  #clear(): void {
    this.#ids = new TextColumn();
    this.#matchIds = new TextColumn();
    this.#metadata = this.#withMetadata ? new TextColumn() : null;
    this.#numbers = new NumberColumn();
    this.#offsets = [0];
    this.#givenCount = 0;
    this.#isContinued = false;
    this.#rank = 0;
  }
}

/** Below this a loop is faster than to make a view and copy it. */
const LOOPED_BYTES_MAX = 48;

/** Strings that are copied from columns of others. */
class TextColumn {
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

  taken(): Utf8Column {
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

  taken(): Float64Array {
    return this.#numbers.subarray(0, this.length);
  }
}

function enlarged<T extends Uint8Array | Int32Array | Float64Array>(array: T, length: number): T {
  const copy = new (array.constructor as new (length: number) => T)(length);
  copy.set(array);
  return copy;
}
