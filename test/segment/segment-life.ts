// The life of segments whose records have further vectors: rows are appended in parts, sealed, written to a
// file and compacted, and compared with the appended ones after each step.

import assert from 'node:assert/strict';
import type { VectorBatch } from '../../src/common/types.js';
import { compactSegmentsTask } from '../../src/segment/compaction.js';
import { Segment } from '../../src/segment/segment.js';
import { decodeSegment } from '../../src/segment/segment-file.js';
import { encodeSegment, Random } from './sample.js';

export interface RowKind<Row> {
  readonly activeSegment: (number: number) => Segment;
  readonly randomRow: (random: Random) => Row;
  /** Ids begin with the prefix. */
  readonly batchWith: (rows: readonly Row[], prefix: string) => VectorBatch;
  readonly assertRows: (segment: Segment, rows: readonly Row[]) => void;
}

const ROUNDS = 40;
const DELETED_AT = 7;

export function checkSegmentLife<Row>(seed: number, kind: RowKind<Row>): void {
  for (let round = 0; round < ROUNDS; round++) {
    const random = new Random(seed + round);
    const segments = [kind.activeSegment(1), kind.activeSegment(2)];
    const models = segments.map((segment) => fillAndStore(segment, random, kind));
    for (const [i, segment] of segments.entries()) {
      for (const row of models[i]!.keys()) {
        if (random.next() < 0.3) segment.markDeleted(row, DELETED_AT);
      }
    }
    const { data } = compactSegmentsTask.run({
      inputs: segments.map((segment) => segment.toData()),
      horizonSequence: DELETED_AT,
      key: 'c',
      number: 3,
      rowsMax: 1_000,
    });
    const kept = segments.flatMap((segment, i) =>
      models[i]!.filter((_, row) => segment.deletedSequence(row) === Infinity),
    );
    if (data === null) assert.equal(kept.length, 0);
    else kind.assertRows(Segment.fromData(data), kept);
  }
}

/** The rows of the segment, which are the same in its file. */
function fillAndStore<Row>(segment: Segment, random: Random, kind: RowKind<Row>): Row[] {
  const { randomRow, batchWith, assertRows } = kind;
  const model: Row[] = [];
  for (let step = 0; step < 6; step++) {
    const rows = Array.from({ length: 1 + random.below(12) }, () => randomRow(random));
    const from = random.below(rows.length);
    segment.append(batchWith(rows, `${step}-`), from, rows.length - from, step + 1);
    model.push(...rows.slice(from));
  }
  assertRows(segment, model);
  segment.seal();
  assertRows(segment, model);
  const { bytes } = encodeSegment(segment.toData());
  const stored = decodeSegment(bytes, { key: 'k', number: segment.number });
  assertRows(stored, model);
  assert.deepEqual(encodeSegment(stored.toData()).bytes, bytes);
  return model;
}
