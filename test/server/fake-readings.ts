// What the fake database gives for scans and joins: all rows in one piece, and every row of the
// searched collection as a match, best first by dot product.

import type { Utf8Column } from '../../src/common/types.js';
import type { Join } from '../../src/database/bulk/join.js';
import type { RowPiece } from '../../src/database/bulk/row-pieces.js';
import type { Scan } from '../../src/database/bulk/scan.js';

export interface FakeRow {
  readonly id: string;
  readonly values: Float32Array;
  readonly metadata: string;
}

export function fakeScan(
  rows: readonly FakeRow[],
  options: {
    readonly dimension: number;
    readonly sequence: number;
    readonly includeValues: boolean;
    readonly includeMetadata: boolean;
  },
): Scan {
  const piece: RowPiece = {
    count: rows.length,
    ids: textColumn(rows.map(({ id }) => id)),
    values: options.includeValues
      ? Float32Array.from(rows.flatMap(({ values }) => [...values]))
      : null,
    metadata: options.includeMetadata ? textColumn(rows.map(({ metadata }) => metadata)) : null,
  };
  const { dimension, sequence } = options;
  return { dimension, sequence, rowCount: rows.length, pieces: () => [piece] };
}

export function fakeJoin(rows: readonly FakeRow[], searched: readonly FakeRow[], k: number): Join {
  const matches = rows.map(({ values }) =>
    searched
      .map(({ id, values: other }) => ({ id, score: dot(values, other) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, k),
  );
  const offsets = new Int32Array(rows.length + 1);
  for (const [i, { length }] of matches.entries()) offsets[i + 1] = offsets[i]! + length;
  const flat = matches.flat();
  return {
    sequence: 1,
    withSequence: 1,
    metric: 'dot',
    rowCount: rows.length,
    async *pieces() {
      yield {
        rowCount: rows.length,
        ids: textColumn(rows.map(({ id }) => id)),
        offsets,
        givenCount: 0,
        isContinued: false,
        isOpen: false,
        matchCount: flat.length,
        matchIds: textColumn(flat.map(({ id }) => id)),
        scores: Float32Array.from(flat, ({ score }) => score),
        distances: null,
        metadata: null,
      };
    },
  };
}

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, x, i) => sum + x * b[i]!, 0);
}

export function textColumn(texts: readonly string[]): Utf8Column {
  const parts = texts.map((text) => Buffer.from(text));
  const offsets = new Int32Array(texts.length + 1);
  for (const [i, part] of parts.entries()) offsets[i + 1] = offsets[i]! + part.length;
  return { offsets, bytes: Buffer.concat(parts) };
}
