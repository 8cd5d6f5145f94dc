// Heads of segments that grow: in any order of staging, appending, sealing and making the head, a block has the head of
// all its rows or none, and the codes of earlier readers do not change. Codes of another encoder start without.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RowCodes, RowEncoder } from '../../src/common/types.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { Segment } from '../../src/segment/segment.js';
import { basisOf, checkCodes, createCheckedEncoder, DIMENSION } from '../database/checked-codes.js';
import { activeOptions, batchOf, Random, type SampleRow, seedOf } from './sample.js';

const ROUNDS = 150;
const ROWS_MAX = 400;

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** An encoder of which everything that is done in the pool takes some turns of the event loop. */
function createSlowEncoder(random: Random): RowEncoder {
  const encoder = createCheckedEncoder('slow', async () => basisOf(3));
  const pause = () => turns(random.below(4));
  return {
    ...encoder,
    async encodeAll(rows) {
      await pause();
      await encoder.encodeAll(rows);
      await pause();
    },
    async encodeHead(rows) {
      await pause();
      await encoder.encodeHead(rows);
      await pause();
    },
  };
}

function rowsOf(random: Random, count: number): SampleRow[] {
  return Array.from({ length: count }, () => {
    const values = Array.from({ length: DIMENSION }, () => random.below(100));
    return { id: `${random.next()}`, values, metadata: '{}' };
  });
}

/** Returns a sealed segment with a head. */
async function sealedSegment(random: Random, encoder: RowEncoder): Promise<Segment> {
  const segment = Segment.createActive({ ...activeOptions({}), encoder });
  segment.append(batchOf(rowsOf(random, 20)), 0, 20, 1);
  segment.seal();
  await segment.makeHeads(encoder, []);
  return segment;
}

/** Appends the rows, some of them after others were staged in their place. */
async function write(segment: Segment, random: Random, sequence: number): Promise<void> {
  const count = Math.min(1 + random.below(random.pick([3, 60])), ROWS_MAX - segment.rowCount);
  const batch = batchOf(rowsOf(random, count));
  if (random.below(4) > 0) await segment.stage([{ batch, from: 0, count }], createInlinePool());
  if (random.below(5) === 0) return;
  // A head may be made between the two.
  await turns(random.below(8));
  const first = random.below(4) === 0 ? 1 + random.below(count) : count;
  segment.append(batch, 0, first, sequence);
  await turns(random.below(2));
  if (first < count) segment.append(batch, first, count - first, sequence);
}

describe('the head of a segment that grows', () => {
  it('has all rows or is missing', async () => {
    const seed = seedOf('growing heads');
    let headCount = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const random = new Random(seed + round);
      const encoder = createSlowEncoder(random);
      const sealed = await sealedSegment(random, encoder);
      const isKnown = random.below(2) === 0;
      const options = { ...activeOptions({ rowsMax: ROWS_MAX, number: 2 }), encoder };
      const segment = Segment.createActive({ ...options, others: () => (isKnown ? [sealed] : []) });
      let making: Promise<void> | null = null;
      const seen: { readonly codes: RowCodes; readonly copy: Uint8Array }[] = [];
      while (segment.rowCount < ROWS_MAX && random.below(40) > 0) {
        if (random.below(4) === 0) making ??= segment.makeGrowingHeads([sealed]);
        await write(segment, random, segment.rowCount + 1);
        const block = segment.block('');
        if (block === undefined) continue;
        const codes = checkCodes(encoder.encoding, block);
        if (codes.head === null) continue;
        headCount++;
        const copy = codes.head.slice(0, block.rowCount * 4);
        seen.push({ codes, copy });
      }
      segment.seal();
      await making;
      const block = segment.block('');
      if (block === undefined) continue;
      const { head } = checkCodes(encoder.encoding, block);
      if (isKnown) assert.equal(head?.length, 4 * segment.rowCount, `seed ${seed}, round ${round}`);
      for (const { codes, copy } of seen) {
        assert.deepEqual(
          codes.head!.subarray(0, copy.length),
          copy,
          `seed ${seed}, round ${round}`,
        );
      }
      await segment.makeHeads(encoder, [sealed]);
      const made = checkCodes(encoder.encoding, segment.block('')!);
      assert.equal(made.head?.length, 4 * segment.rowCount);
      assert.ok(encoder.accepts(made, segment.rowCount, DIMENSION));
    }
    assert.ok(headCount > ROUNDS, `${headCount} heads, seed ${seed}`);
  });

  it('is made while rows keep arriving', async () => {
    const random = new Random(seedOf('steady writes'));
    const slow = createSlowEncoder(random);
    const encoder: RowEncoder = {
      ...slow,
      // Some rows arrive each time.
      async encodeHead(rows) {
        await turns(3);
        await slow.encodeHead(rows);
      },
    };
    const sealed = await sealedSegment(random, encoder);
    const options = activeOptions({ rowsMax: 10_000, number: 2 });
    const segment = Segment.createActive({ ...options, encoder });
    const write = (count: number) => {
      segment.append(batchOf(rowsOf(random, count)), 0, count, segment.rowCount + 1);
    };
    write(1_000);
    let isMade = false;
    const making = segment.makeGrowingHeads([sealed]).then(() => {
      isMade = true;
    });
    for (let turn = 0; turn < 1_000 && !isMade; turn++) {
      write(1);
      await turns(1);
    }
    assert.ok(isMade, `${segment.rowCount} rows`);
    await making;
    assert.ok(checkCodes(encoder.encoding, segment.block('')!).head !== null);
  });
});

describe('the head of a sealed segment', () => {
  it('is decided on again when its codes are replaced by those of another encoder', async () => {
    const random = new Random(seedOf('another encoder'));
    const segment = await sealedSegment(random, createSlowEncoder(random));
    const other = createCheckedEncoder('other', async () => basisOf(4));
    await segment.encode(other);
    assert.equal(checkCodes('other', segment.block('')!).head, null);
    await segment.makeHeads(other, []);
    assert.deepEqual(checkCodes('other', segment.block('')!).basis, basisOf(4));
  });
});
