// The cuda engine with its real kernels on GPUs emulated on the CPU: slow, and as exact as a device.

import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { createEngine } from '../../../src/engine/choose-engine.js';
import type { Engine } from '../../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { type CudaEngine, createCudaEngine } from '../../../src/engine/cuda/cuda-engine.js';
import type { BlockParts, CudaKernels, DeviceHits } from '../../../src/engine/cuda/cuda-kernels.js';
import { createSimdEngine } from '../../../src/engine/simd/simd-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { createRandom } from '../../../src/tools/selftest/blocks.js';
import { CONTRACT } from '../../../src/tools/selftest/contract.js';
import { createContext } from '../../../src/tools/selftest/contract-case.js';
import { withCodes } from '../../../src/tools/selftest/encoding-engine.js';
import { SEED } from '../blocks.js';
import { ADDON, connectEmulated, MISSING_ADDON } from './emulated-devices.js';

type Batch = Parameters<CudaKernels['beginSearch']>[1];

const WITH_VALUES: BlockParts = { hasValues: true, hasHead: false };
const WITHOUT_CODES = { codes: null, coarse: null, basis: null, head: null };

if (MISSING_ADDON === false) {
  // The emulator reads the variable once, at its first call.
  process.env.SAGITTA_TEST_EMULATED_DEVICES = '2';
  // On a busy machine a call may only seem to hang.
  process.env.SAGITTA_TEST_EMULATED_PATIENCE = '12';
  testContract('with codes of the simd engine', (engine) => withCodes(engine), createSimdEngine);
  testContract('without codes', (engine) => engine, createReferenceEngine);
  testChoice();
  testKernels();
} else {
  test('the cuda engine on an emulated GPU', { skip: MISSING_ADDON }, () => {});
}

function testContract(
  what: string,
  wrap: (engine: Engine) => Engine,
  createFallback: (options: { pool: ReturnType<typeof createInlinePool> }) => Engine,
): void {
  describe(`the cuda engine on emulated GPUs, ${what}`, () => {
    let cuda: CudaEngine;
    let engine: Engine;
    before(async () => {
      console.log(`SAGITTA_TEST_SEED=${SEED}`);
      cuda = await createCudaEngine({
        addonPath: ADDON,
        fallback: createFallback({ pool: createInlinePool() }),
        onEvent: (event) => {
          throw event.kind === 'device lost' ? event.error : new Error(event.kind);
        },
      });
      console.log(cuda.describe());
      engine = wrap(cuda);
    });
    after(async () => {
      console.log(JSON.stringify(cuda.stats()));
      await engine.close();
    });

    const countFallbacks = () => cuda.stats().fallbackQueryCount;
    for (const { name, run } of CONTRACT) {
      it(name, () => run(createContext(engine, 'cuda', SEED, countFallbacks)));
    }
  });
}

function testChoice(): void {
  it('a GPU is chosen first, and its counters are exported', async (t) => {
    const pool = createInlinePool();
    const { engine, reason, readings } = await createEngine({
      requested: 'auto',
      pool,
      cudaAddonPath: ADDON,
    });
    t.after(async () => {
      await engine.close();
      await pool.close();
    });
    assert.equal(engine.name, 'cuda');
    assert.match(reason, /^(wgmma|mma) kernels on emulated device 0 .*; the \w+ engine searches/);
    const read = () => Object.fromEntries(readings.map(({ name, read }) => [name, read()]));
    const { sagitta_device_uploaded_bytes_total: uploaded, ...rest } = read();
    // The rows of the probe search.
    assert.ok(uploaded! > 16_500 * 8 * 4, `${uploaded} bytes went up`);
    assert.deepEqual(rest, {
      sagitta_device_fallback_queries_total: 0,
      sagitta_device_undecided_queries_total: 0,
      sagitta_device_repeated_queries_total: 0,
      sagitta_device_coarse_queries_total: 0,
      sagitta_device_head_queries_total: 0,
      sagitta_device_abandoned_queries_total: 0,
      sagitta_device_losses_total: 0,
    });
  });
}

function testKernels(): void {
  describe('the CUDA addon', () => {
    const processes: ReturnType<typeof connectEmulated>[] = [];
    let kernels: CudaKernels;
    let others: CudaKernels;
    before(() => {
      processes.push(connectEmulated(), connectEmulated());
      [kernels, others] = processes.map((each) => each.kernels) as [CudaKernels, CudaKernels];
    });
    after(() => {
      for (const { end } of processes) end();
    });

    it('rejects arguments whose shapes do not match', () => {
      assert.throws(() => kernels.open(9, null), /\S/);
      assert.throws(() => kernels.open(0, 'no such kernels'), /no such kernels/);
      assert.throws(() => kernels.describe(4_000_000), /device: unknown ticket/);
      assert.throws(() => kernels.reserve(4_000_000, 1, WITH_VALUES), /block: unknown ticket/);
      const device = kernels.open(0, null);
      const other = others.open(1, null);
      const block = kernels.createBlock(device, 4);
      assert.equal(kernels.reserve(block, 10, WITH_VALUES), true);
      const rows = { ...WITHOUT_CODES, values: new Float32Array(40) };
      const fewValues = { ...rows, values: new Float32Array(39) };
      assert.throws(() => kernels.extend(block, fewValues, 10), /fewer values/);
      const fewCodes = { ...rows, codes: new Uint8Array(10) };
      assert.throws(() => kernels.extend(block, fewCodes, 10), /fewer codes/);
      const bytes = { ...rows, values: new Uint8Array(400) as unknown as Float32Array };
      assert.throws(() => kernels.extend(block, bytes, 10), TypeError);
      const wide = kernels.createBlock(device, 64);
      kernels.reserve(wide, 10, WITH_VALUES);
      const fewCoarse = { ...rows, values: new Float32Array(640), coarse: new Uint8Array(10) };
      assert.throws(() => kernels.extend(wide, fewCoarse, 10), /fewer codes/);
      kernels.destroyBlock(wide);
      const sealed = kernels.createBlock(device, 128);
      kernels.reserve(sealed, 10, { hasValues: true, hasHead: true });
      const headless = { ...rows, values: new Float32Array(1280) };
      assert.throws(() => kernels.extend(sealed, headless, 10), /out of range/);
      const fewHeads = { ...headless, head: new Uint8Array(10) };
      assert.throws(() => kernels.extend(sealed, fewHeads, 10), /fewer codes/);
      kernels.destroyBlock(sealed);
      kernels.extend(block, rows, 10);

      const batch = createBatch(10);
      const residents = Uint32Array.of(block);
      assert.throws(
        () => kernels.beginSearch(other, batch, residents),
        /block belongs to another device/,
      );
      assert.throws(() => kernels.beginSearch(device, batch, new Uint32Array(2)), /one per block/);
      assert.throws(
        () => kernels.beginSearch(device, createBatch(11), residents),
        /more rows than are/,
      );
      assert.deepEqual([...search(kernels, device, batch, residents).rows], [0]);
      kernels.close(device);
      assert.throws(() => kernels.destroyBlock(block), /block: unknown ticket/);
      kernels.close(other);
    });

    it('checks every kernel with every batch when it is opened, as on a GPU', (t) => {
      process.env.SAGITTA_TEST_EMULATED_WHOLE_CHECK = '1';
      const { kernels, end } = connectEmulated();
      delete process.env.SAGITTA_TEST_EMULATED_WHOLE_CHECK;
      t.after(end);
      const device = kernels.open(0, 'wgmma-ring');
      assert.match(JSON.stringify(kernels.describe(device)), /wgmma-ring/);
      kernels.close(device);
    });

    it('reports out of memory and leaves the block unchanged', (t) => {
      const process = connectEmulated();
      t.after(() => process.end());
      const { kernels } = process;
      const device = kernels.open(0, null);
      const block = kernels.createBlock(device, 4);
      assert.equal(kernels.reserve(block, 10, WITH_VALUES), true);
      kernels.extend(block, { ...WITHOUT_CODES, values: new Float32Array(40) }, 10);
      const { freeBytes } = kernels.describe(device);
      const rowCount = Math.ceil(freeBytes / 16);
      assert.ok(kernels.blockBytes(4, rowCount, WITH_VALUES) > freeBytes);
      assert.equal(kernels.reserve(block, rowCount, WITH_VALUES), false);
      const hits = search(kernels, device, createBatch(10), Uint32Array.of(block));
      assert.deepEqual([...hits.rows], [0]);
      kernels.close(device);
    });

    it('finds the same rows by coarse codes and head tiles, which go up with the values', async (t) => {
      const { kernels, end } = connectEmulated();
      t.after(end);
      const device = kernels.open(0, null);
      const dimension = 128;
      const rowCount = 3000;
      const random = createRandom(SEED);
      // Along a few axes, so that a head pays for them.
      const values = Float32Array.from(
        { length: rowCount * dimension },
        (_, i) => (random() - 0.5) * (i % dimension < 6 ? 1 : 0.01),
      );
      const { rowEncoder } = createSimdEngine({ pool: createInlinePool() });
      const head = await rowEncoder!.makeHead({ values, rowCount, dimension }, null);
      assert.ok(head !== null, 'a head pays');
      const block = kernels.createBlock(device, dimension);
      const all = { hasValues: true, hasHead: true };
      assert.equal(kernels.reserve(block, rowCount, all), true);
      kernels.extend(block, { ...WITHOUT_CODES, values, ...head }, rowCount);
      const panels = Math.ceil(rowCount / 16);
      const bytesOf = (parts: BlockParts) => kernels.blockBytes(dimension, rowCount, parts);
      const coarseBytes = bytesOf(WITH_VALUES) - bytesOf({ hasValues: false, hasHead: true });
      assert.ok(coarseBytes >= 4 * values.length + 768 * panels);
      assert.ok(bytesOf(all) >= bytesOf(WITH_VALUES) + head.head.length);
      const queries = 3;
      const zeros = createBatch(rowCount);
      const batch = {
        ...zeros,
        dimension,
        blocks: zeros.blocks.map((each) => ({ ...each, values })),
        vectors: values.slice(0, queries * dimension),
        metrics: Uint8Array.of(0, 1, 2),
        ks: Uint32Array.of(5, 5, 5),
        views: Uint32Array.of(0, rowCount, 0),
        viewRanges: Uint32Array.of(0, 1, 0, 1, 0, 1),
        floors: new Float64Array(queries).fill(Number.NEGATIVE_INFINITY),
        afterScores: new Float64Array(queries),
        afterOffsets: new Uint32Array(queries + 1),
      };
      const answers = ([1, 2, 3] as const).map((method) =>
        search(kernels, device, { ...batch, method }, Uint32Array.of(block)),
      );
      const counts = answers.map(({ times }) => [times.coarseQueryCount, times.headQueryCount]);
      assert.deepEqual(counts, [
        [0, 0],
        [3, 0],
        [0, 3],
      ]);
      const [byTiles, ...others] = answers;
      assert.equal(byTiles!.rows[0], 0);
      for (const { rows, scores } of others) {
        assert.deepEqual([...rows], [...byTiles!.rows]);
        assert.deepEqual([...scores], [...byTiles!.scores]);
      }
      kernels.close(device);
    });
  });
}

function search(
  kernels: CudaKernels,
  device: number,
  batch: Batch,
  residents: Uint32Array,
): DeviceHits {
  kernels.beginSearch(device, batch, residents);
  return kernels.endSearch(device, batch);
}

/** A batch of one query over `rowCount` rows of four zeros. */
function createBatch(rowCount: number): Batch {
  return {
    dimension: 4,
    workerCount: 1,
    blocks: [
      {
        rowCount,
        values: new Float32Array(rowCount * 4),
        codes: null,
        coarse: null,
        refinement: null,
        basis: null,
        head: null,
        idOffsets: Int32Array.from({ length: rowCount + 1 }, (_, row) => row),
        idBytes: Uint8Array.from({ length: rowCount }, (_, row) => row),
      },
    ],
    bitmaps: [],
    views: Uint32Array.of(0, rowCount, 0),
    vectors: new Float32Array(4),
    metrics: Uint8Array.of(1),
    ks: Uint32Array.of(1),
    floors: Float64Array.of(Number.NEGATIVE_INFINITY),
    afterScores: new Float64Array(1),
    afterOffsets: new Uint32Array(2),
    afterIds: new Uint8Array(0),
    viewRanges: Uint32Array.of(0, 1),
  };
}
