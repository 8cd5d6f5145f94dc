// Heads of blocks: when they are made, which of them are accepted from files, and that answers do not depend on them.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { RowCodes, RowEncoder, RowHead, VectorBlock } from '../../../src/common/types.js';
import type { Engine, SearchQuery } from '../../../src/engine/core/engine.js';
import { createSimdEngine } from '../../../src/engine/simd/simd-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { rowOf } from '../../../src/tools/selftest/blocks.js';
import { createRandomMultiBlockQuery } from '../../../src/tools/selftest/random-queries.js';
import { assertTrueHits, bruteForce, trueScore } from '../../../src/tools/selftest/truth.js';
import {
  createMultiBlockQuery,
  createRandom,
  createRandomBlock,
  createVector,
  fullView,
  randomInt,
  SEED,
} from '../blocks.js';
import { loadedKernels } from './loaded-kernels.js';

const DIMENSION = 768;
const ROW_COUNT = 2_200;

const createEngine = (threadCount = 1): Engine & { rowEncoder: RowEncoder } =>
  createSimdEngine({ pool: { ...createInlinePool(), threadCount } }) as ReturnType<
    typeof createEngine
  >;

function encoded(encoder: RowEncoder, block: VectorBlock): RowCodes {
  const { values, dimension, rowCount } = block;
  const codes = encoder.allocate(rowCount, dimension);
  encoder.encode({ values, dimension, from: 0, to: rowCount, codes });
  return codes;
}

/** Returns one of some random blocks, the first for which a head pays; whether it does is a matter of estimated costs. */
async function blockWithHead(random: () => number, encoder: RowEncoder, dimension = DIMENSION) {
  for (let i = 0; i < 8; i++) {
    const block = createRandomBlock(random, 'directed', ROW_COUNT, dimension);
    if ((await encoder.makeHead(block, null)) !== null) return block;
  }
  throw new Error(`no head pays, seed ${SEED}`);
}

async function headOf(encoder: RowEncoder, block: VectorBlock): Promise<RowHead> {
  const head = await encoder.makeHead(block, null);
  assert.ok(head !== null, `a head pays for such rows, seed ${SEED}`);
  return head;
}

/** The block with the axes in another order, so that rows differ in other directions. */
function turned(block: VectorBlock): VectorBlock {
  const values = new Float32Array(new SharedArrayBuffer(block.values.byteLength));
  for (let i = 0; i < values.length; i += block.dimension) {
    values.set(block.values.slice(i, i + block.dimension).reverse(), i);
  }
  return { ...block, values, key: `${block.key} turned` };
}

describe('heads', { skip: loadedKernels() === null && 'the kernels are not built' }, () => {
  const random = createRandom(SEED);
  const { rowEncoder: encoder } = createEngine();
  let block: VectorBlock;
  before(async () => {
    block = await blockWithHead(random, encoder);
  });

  it('are made for rows that differ mostly in few directions, whatever the threads', async () => {
    const made = await headOf(encoder, block);
    assert.ok(made.basis.buffer instanceof SharedArrayBuffer);
    assert.ok(made.head.buffer instanceof SharedArrayBuffer);
    const { tiles } = encoded(encoder, block);
    assert.ok(made.head.length < tiles.length / 2, 'a head has less than half the bytes of tiles');
    assert.deepEqual(await createEngine(9).rowEncoder.makeHead(block, null), made);
  });

  it('are not made for other rows, for few rows and for small dimensions', async () => {
    for (const [kind, rowCount, dimension] of [
      ['random', ROW_COUNT, DIMENSION],
      ['directed', 500, DIMENSION],
      ['directed', ROW_COUNT, 100],
      ['directed', 0, DIMENSION],
    ] as const) {
      const other = createRandomBlock(random, kind, rowCount, dimension);
      assert.equal(await encoder.makeHead(other, null), null, `${kind} ${rowCount} ${dimension}`);
    }
  });

  it('take the basis of similar rows over, and no other', async () => {
    const { basis } = await headOf(encoder, block);
    const similar = createRandomBlock(random, 'directed', ROW_COUNT, DIMENSION);
    const made = await encoder.makeHead(similar, basis);
    assert.ok(made?.basis === basis, 'it is the same array');
    const other = await encoder.makeHead(turned(block), basis);
    assert.notDeepEqual(other?.basis, basis);
    assert.deepEqual(
      await encoder.makeHead(block, new Uint8Array(77)),
      await headOf(encoder, block),
    );
  });

  it('are accepted only whole and with an unchanged basis of the dimension', async () => {
    const codes: RowCodes = { ...encoded(encoder, block), ...(await headOf(encoder, block)) };
    const { basis, head } = codes as RowHead;
    const accepts = (changes: Partial<RowCodes>, rowCount = ROW_COUNT, dimension = DIMENSION) =>
      encoder.accepts({ ...codes, ...changes }, rowCount, dimension);
    assert.ok(accepts({}));
    assert.ok(accepts({ basis: null, head: null }));
    for (let i = 0; i < 300; i++) {
      const at = i < 100 ? i : randomInt(random, basis.length);
      const damaged = basis.slice();
      damaged[at]! ^= 1 << randomInt(random, 8);
      assert.ok(!accepts({ basis: damaged }), `byte ${at}`);
    }
    assert.ok(!accepts({ encoding: 'another' }));
    assert.ok(!accepts({ basis: null }));
    assert.ok(!accepts({ head: null }));
    assert.ok(!accepts({ head: head.subarray(1) }));
    assert.ok(!accepts({ head: new Uint8Array(head.length + 1) }));
    assert.ok(!accepts({}, ROW_COUNT + 64));
    for (const length of [0, 1, 8, 55, 56, 57, basis.length - 4, basis.length - 1]) {
      assert.ok(!accepts({ basis: basis.slice(0, length) }), `${length} bytes`);
    }
    const wide = await blockWithHead(random, encoder, DIMENSION + 64);
    assert.ok(!accepts({ basis: (await headOf(encoder, wide)).basis }));
    assert.ok(!encoder.accepts(codes, ROW_COUNT, 2 * DIMENSION));
  });

  it('do not change answers, also beside blocks of other bases and without', async () => {
    const engine = createEngine();
    const kinds = ['directed', 'directed', 'random', 'directed'] as const;
    const plain = kinds.map((kind, i) => {
      if (i === 0) return block;
      const made = createRandomBlock(random, kind, 2_100 + i * 64, DIMENSION);
      return i === 3 ? turned(made) : made;
    });
    const blocks: VectorBlock[] = [];
    let previous: Uint8Array | null = null;
    for (const [i, each] of plain.entries()) {
      const head = await encoder.makeHead(each, previous);
      previous = head?.basis ?? previous;
      const codes = { ...encoded(encoder, each), ...head };
      // A basis need not be the same array to be equal.
      if (i === 1 && head !== null) codes.basis = head.basis.slice();
      blocks.push({ ...each, codes });
    }
    const heads = blocks.map(({ codes }) => codes?.head !== null);
    assert.deepEqual(heads.slice(0, 3), [true, true, false]);
    for (let i = 0; i < 12; i++) {
      const queries: SearchQuery[] = Array.from({ length: 1 + randomInt(random, 3) }, () =>
        createRandomMultiBlockQuery(random, blocks, 'directed'),
      );
      const answers = await engine.search(queries);
      for (const [index, query] of queries.entries()) {
        assertTrueHits(answers[index]!, bruteForce(query), `query ${i}, seed ${SEED}`);
      }
    }
    await engine.close();
  });

  it('of any bytes lead to no score that is not true, and to no crash', async () => {
    const engine = createEngine();
    const codes: RowCodes = { ...encoded(encoder, block), ...(await headOf(encoder, block)) };
    for (let i = 0; i < 20; i++) {
      const head = codes.head!.slice();
      const damaged = i === 0 ? head.fill(0) : head;
      for (let j = 0; j < 4 ** (i % 7); j++) {
        damaged[randomInt(random, damaged.length)] = randomInt(random, 256);
      }
      if (i % 5 === 4) damaged.fill(255);
      const hurt = { ...block, codes: { ...codes, head: damaged } };
      const vector = createVector(random, block, 'directed');
      const query = createMultiBlockQuery([fullView(hurt)], vector);
      const [hits] = await engine.search([query]);
      for (const [rank, row] of hits!.rows.entries()) {
        assert.equal(hits!.scores[rank], trueScore('cosine', vector, rowOf(block, row)));
      }
    }
    await engine.close();
  });
});
