import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../src/common/types.js';
import { type Compaction, compactSegmentsTask } from '../../src/segment/compaction.js';
import { Segment } from '../../src/segment/segment.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import {
  activeOptions,
  assertColumnsEqual,
  batchOf,
  contentOf,
  Random,
  randomDocument,
  rowsOf,
  seedOf,
} from './sample.js';

/** Clones input and output but not shared memory, as a worker does. */
function compact(
  segments: readonly Segment[],
  horizonSequence: number,
  options: { rowsMax?: number; columnsMax?: number } = {},
): Compaction {
  const input = {
    inputs: segments.map((segment) => segment.toData()),
    horizonSequence,
    key: 'incarnation/9',
    number: 9,
    rowsMax: 1_000,
    ...options,
  };
  return structuredClone(compactSegmentsTask.run(structuredClone(input)));
}

function randomSegment(random: Random, number: number, firstSequence: number): Segment {
  const columnsMax = random.pick([2, 256]);
  const segment = Segment.createActive(activeOptions({ number, columnsMax }));
  const rows = rowsOf(
    Array.from({ length: random.below(40) }, () => randomDocument(random)),
    `${number}-`,
  );
  const batch = batchOf(rows);
  for (let row = 0; row < rows.length; row++) {
    segment.append(batch, row, 1, firstSequence + Math.floor(row / 3));
  }
  segment.seal();
  for (let row = 0; row < rows.length; row++) {
    if (random.next() < 0.4) segment.markDeleted(row, firstSequence + 20 + random.below(40));
  }
  return segment;
}

describe('a compaction', () => {
  it('keeps order, contents and sequences of rows not deleted before the horizon', () => {
    const seed = seedOf('compaction');
    for (let round = 0; round < (IS_NIGHTLY ? 100 : 40); round++) {
      const random = new Random(seed + round);
      const segments = Array.from({ length: 1 + random.below(4) }, (_, i) =>
        randomSegment(random, i + 1, 1 + i * 20),
      );
      const horizon = random.below(120);
      const columnsMax = random.pick([1, 256]);
      const { data, mappings } = compact(segments, horizon, { columnsMax });
      const kept = segments.flatMap((segment) =>
        contentOf(segment).filter((_, row) => segment.deletedSequence(row) > horizon),
      );
      let next = 0;
      for (const [i, segment] of segments.entries()) {
        assert.equal(mappings[i]!.length, segment.rowCount);
        for (let row = 0; row < segment.rowCount; row++) {
          assert.equal(mappings[i]![row], segment.deletedSequence(row) > horizon ? next++ : -1);
        }
      }
      if (data === null) {
        assert.equal(kept.length, 0);
        continue;
      }
      const compacted = Segment.fromData(data);
      assert.deepEqual(contentOf(compacted), kept);
      assert.ok(compacted.isSealed);
      assert.deepEqual([compacted.key, compacted.number], ['incarnation/9', 9]);
      const documents = kept.map((_, row) => JSON.parse(compacted.metadata(row)) as JsonObject);
      assertColumnsEqual(compacted.metadataView(), documents);
      assert.ok(compacted.metadataView().columns.size <= columnsMax);
    }
  });

  it('gives columns to paths that exceeded the limit before', () => {
    const segment = Segment.createActive(activeOptions({ columnsMax: 1 }));
    segment.append(batchOf(rowsOf([{ a: 1 }, { b: 1 }])), 0, 2, 1);
    segment.seal();
    segment.markDeleted(0, 2);
    const { data } = compact([segment], 2);
    assert.deepEqual([...data!.columns.keys()], ['b']);
    assert.equal(data!.isComplete, true);
  });

  it('returns no segment when no row remains', () => {
    const segment = Segment.createActive(activeOptions({}));
    segment.append(batchOf(rowsOf([{}, {}])), 0, 2, 1);
    segment.markDeleted(0, 2);
    segment.markDeleted(1, 3);
    assert.equal(compact([segment], 3).data, null);
    assert.equal(compact([segment], 2).data?.rowCount, 1);
    assert.deepEqual([...compact([segment], 3).mappings[0]!], [-1, -1]);
  });

  it('rejects inputs whose remaining rows exceed one segment', () => {
    const segment = Segment.createActive(activeOptions({}));
    segment.append(batchOf(rowsOf([{}, {}, {}])), 0, 3, 1);
    assert.throws(() => compact([segment, segment], 0, { rowsMax: 5 }), /6 rows in a segment of 5/);
  });
});
