// Generates any number of vectors from their row numbers, to load more than fits into memory and to find the nearest
// ones by brute force without storing them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import {
  canonicalScore,
  createCanonicalQuery,
  sumOfProducts,
  sumOfSquares,
} from '../../src/engine/core/canonical.js';
import { encodeEnd, encodeRecordBatch, encodeSchema } from '../../src/formats/arrow/ipc-writer.js';
import { columnOf } from '../database/harness.js';

/** Spread of the vectors around each centre. The coordinates of centres have spread 1. */
const SPREAD = 0.5;
const CENTRE_COUNT = 1_000;
/** Rows per record batch and write: 8 MB of vectors with 768 dimensions. */
const BATCH_ROWS = 2_500;

/** A query for the brute-force search. */
export interface Question {
  readonly vector: Float32Array;
  /** Whether a row takes part; all rows do if absent. */
  readonly isIncluded?: (row: number) => boolean;
}

export class GeneratedRows {
  readonly dimension: number;
  /** Row-major [CENTRE_COUNT, dimension]. */
  readonly #centres: Float32Array;

  constructor(dimension: number) {
    this.dimension = dimension;
    this.#centres = new Float32Array(CENTRE_COUNT * dimension);
    for (let i = 0; i < CENTRE_COUNT; i++) addBells(this.#centres, i * dimension, dimension, ~i, 1);
  }

  /** Writes the vector of a row to `target[offset..offset + dimension)`. */
  fill(row: number, target: Float32Array, offset: number): void {
    const { dimension } = this;
    const centre = (Math.imul(row, 0x9e3779b1) >>> 8) % CENTRE_COUNT;
    target.set(this.#centres.subarray(centre * dimension, (centre + 1) * dimension), offset);
    addBells(target, offset, dimension, row, SPREAD);
  }

  vector(row: number): Float32Array {
    const vector = new Float32Array(this.dimension);
    this.fill(row, vector, 0);
    return vector;
  }

  idOf(row: number): string {
    return `v${String(row).padStart(8, '0')}`;
  }

  /**
   * Metadata of a row as JSON. `n` runs from 0 to 999, so that a condition on it can match any fraction of the rows.
   */
  metadataOf(row: number): string {
    return `{"n":${row % 1000}}`;
  }

  /** For each question, the ids of the k rows with the highest cosine among the rows 0..rowCount, best first. */
  nearest(questions: readonly Question[], k: number, rowCount: number): string[][] {
    const values = new Float32Array(this.dimension);
    const searches = questions.map(({ vector, isIncluded }) => ({
      query: createCanonicalQuery('cosine', vector),
      isIncluded: isIncluded ?? (() => true),
      best: [] as { score: number; row: number }[],
    }));
    for (let row = 0; row < rowCount; row++) {
      const wanted = searches.filter(({ isIncluded }) => isIncluded(row));
      if (wanted.length === 0) continue;
      this.fill(row, values, 0);
      const square = sumOfSquares(values, 0, this.dimension);
      for (const { query, best } of wanted) {
        const product = sumOfProducts(query.values, values, 0);
        const score = canonicalScore('cosine', product, query.square, square);
        // Rows are visited in the order of their ids, which breaks ties.
        if (best.length === k && score <= best.at(-1)!.score) continue;
        const at = best.findIndex((other) => score > other.score);
        best.splice(at < 0 ? best.length : at, 0, { score, row });
        if (best.length > k) best.pop();
      }
    }
    return searches.map(({ best }) => best.map(({ row }) => this.idOf(row)));
  }
}

/** Adds roughly normal numbers: sums of four bytes (Irwin–Hall), which one step of xorshift32 yields. */
function addBells(
  target: Float32Array,
  offset: number,
  count: number,
  seed: number,
  spread: number,
): void {
  const scale = spread / Math.sqrt((4 * (256 * 256 - 1)) / 12);
  let state = Math.imul(seed + 1, 0x85ebca6b) | 1;
  for (let i = offset; i < offset + count; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const sum =
      (state & 255) + ((state >>> 8) & 255) + ((state >>> 16) & 255) + ((state >>> 24) & 255);
    target[i]! += (sum - 510) * scale;
  }
}

/**
 * Upserts the rows from..to in one Arrow stream. `onBatch` receives the rows of each record batch and the milliseconds
 * until the server had accepted it.
 */
export async function streamRows(
  url: string,
  rows: GeneratedRows,
  [from, to]: readonly [number, number],
  onBatch: (rowCount: number, milliseconds: number) => void = () => {},
): Promise<void> {
  const outgoing = request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.apache.arrow.stream' },
  });
  const answered = once(outgoing, 'response');
  const write = async (chunk: Uint8Array) => {
    if (!outgoing.write(chunk)) await Promise.race([once(outgoing, 'drain'), answered]);
  };
  const { dimension } = rows;
  await write(
    encodeSchema([
      { name: 'id', type: 'utf8' },
      { name: 'values', type: { vectorOf: dimension } },
      { name: 'metadata', type: 'utf8' },
    ]),
  );
  let startedAt = performance.now();
  for (let start = from; start < to; start += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, to - start);
    const values = new Float32Array(count * dimension);
    for (let i = 0; i < count; i++) rows.fill(start + i, values, i * dimension);
    const textOf = (make: (row: number) => string) =>
      columnOf(Array.from({ length: count }, (_, i) => make(start + i)));
    for (const chunk of encodeRecordBatch(count, [
      { leaf: textOf((row) => rows.idOf(row)) },
      { vectors: values },
      { leaf: textOf((row) => rows.metadataOf(row)) },
    ])) {
      await write(chunk);
    }
    const now = performance.now();
    onBatch(count, now - startedAt);
    startedAt = now;
  }
  outgoing.end(encodeEnd());
  const [incoming] = await answered;
  let text = '';
  for await (const chunk of incoming) text += chunk;
  assert.equal(incoming.statusCode, 200, text);
}
