import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VectorBlock } from '../../../src/common/types.js';
import type { Engine } from '../../../src/engine/core/engine.js';
import { EngineUnavailable } from '../../../src/engine/core/engine.js';
import type { CudaEvent } from '../../../src/engine/cuda/cuda-device.js';
import {
  assertTrueHits,
  bruteForce,
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBlock,
  createValues,
  rowOf,
  SEED,
} from '../blocks.js';
import { createFakeDevices } from './fake-devices.js';
import { check, createCase, createFakeEngine, queryFor, turns } from './fake-engine.js';

const MIB = 1024 * 1024;

const random = createRandom(SEED);

/** 100 rows of 10 values: 1 000 bytes of codes, 4 000 of values. */
function createBlocks(count: number): VectorBlock[] {
  return Array.from({ length: count }, () => createRandomBlock(random, 'random', 100, 10));
}

const deviceBytesOf = (engine: Engine, blocks: readonly VectorBlock[]) =>
  blocks.map(({ key }) => engine.bytesUsed(key).deviceBytes);

describe('the placement of blocks on devices', () => {
  it('keeps codes and values of blocks if there is room, and frees unloaded blocks', async () => {
    const { device, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(3);
    await check(engine, blocks);
    assert.deepEqual(deviceBytesOf(engine, blocks), [5_000, 5_000, 5_000]);
    assert.equal(device.usedBytes, 15_000);
    engine.unload(blocks[1]!.key);
    await turns();
    assert.deepEqual(deviceBytesOf(engine, blocks), [5_000, 0, 5_000]);
    assert.equal(device.usedBytes, 10_000);
    assert.equal(fallback.queryCount, 0);
    assert.equal(engine.stats().deviceBytes, 10_000);
  });

  it('prefers codes of all blocks of a batch to values of some', async () => {
    const { device, fallback, engine } = await createCase([10_000]);
    const blocks = createBlocks(5);
    await check(engine, blocks);
    // 9 000 bytes may be used: five blocks of codes, and the values of one block.
    assert.deepEqual(deviceBytesOf(engine, blocks).sort(), [1_000, 1_000, 1_000, 1_000, 5_000]);
    assert.equal(device.usedBytes, 9_000);
    assert.equal(fallback.queryCount, 0);
  });

  it('answers batches larger than the memory without uploading a block twice', async () => {
    const { device, fallback, engine } = await createCase([4_000]);
    const blocks = createBlocks(6);
    await check(engine, blocks);
    assert.deepEqual(deviceBytesOf(engine, blocks), [1_000, 1_000, 1_000, 0, 0, 0]);
    assert.equal(fallback.queryCount, 1);
    const { uploadedBytes } = engine.stats();
    const callCount = device.calls.length;
    for (let i = 0; i < 3; i++) await check(engine, blocks);
    assert.equal(engine.stats().uploadedBytes, uploadedBytes);
    assert.deepEqual(device.calls.slice(callCount), ['search', 'search', 'search']);
    assert.equal(fallback.queryCount, 4);
  });

  it('evicts the least recently used block, its values before its codes', async () => {
    const { clock, engine } = await createCase([10_000]);
    const [a, b, c, d] = createBlocks(4) as [VectorBlock, VectorBlock, VectorBlock, VectorBlock];
    const all = [a, b, c, d];
    for (const block of [a, b]) {
      await check(engine, [block]);
      clock.nowMs += 1_000;
    }
    // There was no room for the values of b until those of a were evicted.
    assert.deepEqual(deviceBytesOf(engine, all), [1_000, 5_000, 0, 0]);
    await check(engine, [c]);
    assert.deepEqual(deviceBytesOf(engine, all), [1_000, 1_000, 5_000, 0]);
    clock.nowMs += 1_000;
    const large = createRandomBlock(random, 'random', 800, 10);
    await check(engine, [large]);
    assert.deepEqual(deviceBytesOf(engine, [...all, large]), [0, 0, 1_000, 0, 8_000]);
  });

  it('does not thrash when two collections are searched alternately', async () => {
    const { clock, engine, fallback } = await createCase([1_200]);
    const [a, b] = createBlocks(2) as [VectorBlock, VectorBlock];
    for (let i = 0; i < 4; i++) {
      await check(engine, [a]);
      await check(engine, [b]);
      clock.nowMs += 60;
    }
    assert.deepEqual(deviceBytesOf(engine, [a, b]), [1_000, 0]);
    assert.equal(fallback.queryCount, 4);
    clock.nowMs += 100;
    await check(engine, [b]);
    assert.deepEqual(deviceBytesOf(engine, [a, b]), [0, 1_000]);
  });

  it('restores the values of a block when there is room again', async () => {
    const { clock, engine } = await createCase([10_000]);
    const [a, b] = createBlocks(2) as [VectorBlock, VectorBlock];
    await check(engine, [a, b]);
    assert.deepEqual(deviceBytesOf(engine, [a, b]), [5_000, 1_000]);
    engine.unload(a.key);
    clock.nowMs += 1;
    await check(engine, [b]);
    assert.deepEqual(deviceBytesOf(engine, [a, b]), [0, 5_000]);
  });

  it('uploads a block again when its head tiles have been made, and keeps them with its values', async () => {
    const { clock, device, engine } = await createCase([7_000]);
    const [plain, other] = createBlocks(2) as [VectorBlock, VectorBlock];
    const codes = { encoding: 'none', tiles: new Uint8Array(16), coarse: null, refinement: null };
    const sealed = {
      ...plain,
      codes: { ...codes, basis: new Uint8Array(8), head: new Uint8Array(8) },
    };
    await check(engine, [plain]);
    assert.deepEqual(deviceBytesOf(engine, [plain]), [5_000]);
    for (let i = 0; i < 3; i++) await check(engine, [sealed]);
    assert.deepEqual(deviceBytesOf(engine, [sealed]), [5_250]);
    assert.deepEqual(
      device.calls.filter((call) => call !== 'search'),
      ['0..100', '0..100'],
    );
    clock.nowMs += 1_000;
    await check(engine, [other]);
    assert.deepEqual(deviceBytesOf(engine, [sealed, other]), [1_000, 5_000]);
  });

  it('uploads only the new rows of a growing block and searches its older versions', async () => {
    const { device, engine, fallback } = await createCase([1_000_000]);
    const values = createValues(random, 'random', 900, 10);
    const ids = createIds(random, 900);
    const views = [100, 101, 149, 151, 100, 900].map((rowCount) =>
      createBlock(values.slice(0, rowCount * 10), 10, ids.slice(0, rowCount), 'grows'),
    );
    const bytes: number[] = [];
    for (const view of views) {
      await check(engine, [view]);
      bytes.push(engine.bytesUsed('grows').deviceBytes / 50);
    }
    const sent = device.calls.filter((call) => call !== 'search');
    assert.deepEqual(sent, ['0..100', '100..101', '101..149', '149..151', '151..900']);
    assert.deepEqual(bytes, [100, 150, 150, 225, 225, 900]);
    assert.equal(fallback.queryCount, 0);
  });

  it('drops the values of a growing block when there is no room for them', async () => {
    const { engine, fallback } = await createCase([6_000]);
    const values = createValues(random, 'random', 6_000, 10);
    const ids = createIds(random, 6_000);
    for (const [rowCount, bytes] of [
      [100, 5_000],
      [120, 1_200],
      [140, 1_800],
      [540, 5_400],
      [560, 5_400],
    ] as const) {
      const view = createBlock(values.slice(0, rowCount * 10), 10, ids.slice(0, rowCount), 'big');
      await check(engine, [view]);
      assert.equal(engine.bytesUsed('big').deviceBytes, bytes);
    }
    assert.equal(fallback.queryCount, 1);
  });

  it('places blocks on the device with the most room and merges the hits', async () => {
    const { fake, engine, fallback } = await createCase([20_000, 30_000]);
    const blocks = createBlocks(7);
    await check(engine, blocks);
    assert.deepEqual(
      fake.devices.map(({ usedBytes }) => usedBytes),
      [15_000, 20_000],
    );
    assert.deepEqual(
      fake.devices.map(({ searchCount }) => searchCount),
      [1, 1],
    );
    assert.equal(fallback.queryCount, 0);
  });
});

describe('uploads of the cuda engine', () => {
  it('continue in the background if they are large, while the fallback answers', async () => {
    const { fake, device, fallback, engine } = await createCase([10_000 * MIB], MIB / 5_000);
    // 300 blocks of 1 MiB are more than a batch waits for.
    const blocks = createBlocks(300);
    fake.holdsUploads = true;
    await check(engine, blocks);
    await check(engine, blocks);
    assert.equal(fallback.queryCount, 2);
    assert.equal(device.searchCount, 0);
    fake.holdsUploads = false;
    await turns(700);
    await check(engine, blocks);
    assert.equal(fallback.queryCount, 2);
    assert.equal(device.searchCount, 1);
    assert.equal(device.calls.filter((call) => call !== 'search').length, 300);
  });

  it('are cancelled when the block is unloaded', async () => {
    const { fake, device, engine } = await createCase([10_000 * MIB], MIB);
    const [block] = createBlocks(1) as [VectorBlock];
    fake.holdsUploads = true;
    await check(engine, [block]);
    engine.unload(block.key);
    fake.holdsUploads = false;
    await turns();
    assert.deepEqual(device.calls, []);
    assert.equal(engine.stats().deviceBytes, 0);
  });
});

describe('the cuda engine when a device fails', () => {
  it('leaves queries that the device cannot decide to the fallback', async () => {
    const { device, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(2);
    device.faults.push('undecided');
    const queries = [0, 1, 2].map((row) => createQuery(blocks[0]!, rowOf(blocks[0]!, row)));
    for (const [i, hits] of (await engine.search(queries)).entries()) {
      assertTrueHits(hits, bruteForce(queries[i]!), `query ${i}`);
    }
    assert.equal(fallback.queryCount, 1);
    const { fallbackQueryCount, undecidedQueryCount, ...stats } = engine.stats();
    assert.deepEqual([fallbackQueryCount, undecidedQueryCount], [1, 1]);
    assert.equal(stats.repeatedQueryCount, 1);
    assert.deepEqual([stats.coarseQueryCount, stats.abandonedQueryCount], [0, 1]);
  });

  it('uses the fallback when a device is lost, and reopens it after a pause', async () => {
    const { device, clock, events, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(2);
    await check(engine, blocks);
    device.faults.push('DEVICE_LOST');
    await Promise.all([check(engine, blocks), check(engine, blocks), check(engine, blocks)]);
    assert.equal(fallback.queryCount, 3);
    assert.deepEqual(deviceBytesOf(engine, blocks), [0, 0]);
    assert.deepEqual(
      events.map((event) => event.kind),
      ['device lost'],
    );
    assert.equal(
      events[0]!.kind === 'device lost' && events[0]!.error.message,
      'DEVICE_LOST for a test',
    );

    clock.nowMs += 999;
    await check(engine, blocks);
    await turns();
    assert.equal(device.openCount, 1);
    clock.nowMs += 1;
    await check(engine, blocks);
    await turns();
    assert.equal(device.openCount, 2);
    await check(engine, blocks);
    assert.equal(fallback.queryCount, 5);
    assert.deepEqual(deviceBytesOf(engine, blocks), [5_000, 5_000]);
    assert.equal(events.at(-1)!.kind, 'device back');
  });

  it('continues with the other device when one is lost', async () => {
    const { fake, fallback, engine } = await createCase([50_000, 50_000]);
    const blocks = createBlocks(4);
    await check(engine, blocks);
    fake.devices[1]!.faults.push('DEVICE_LOST');
    await check(engine, blocks);
    assert.equal(fallback.queryCount, 1);
    await check(engine, blocks);
    assert.equal(fallback.queryCount, 1);
    assert.deepEqual(
      fake.devices.map(({ usedBytes }) => usedBytes),
      [20_000, 0],
    );
  });

  it('does not search blocks on a reopened device that only the lost one had', async () => {
    const { fake, clock, events, fallback, engine } = await createCase([50_000, 45_000]);
    const [a, b] = createBlocks(2) as [VectorBlock, VectorBlock];
    await check(engine, [a]);
    fake.holdsUploads = true;
    const waiting = check(engine, [a, b]);
    fake.devices[0]!.faults.push('DEVICE_LOST');
    await check(engine, [a]);
    clock.nowMs += 1_000;
    // Meanwhile it is uploaded to the other device.
    const moved = check(engine, [a]);
    await turns();
    fake.holdsUploads = false;
    await Promise.all([waiting, moved]);
    assert.deepEqual(
      events.map((event) => event.kind),
      ['device lost', 'device back'],
    );
    assert.equal(fallback.queryCount, 2);
  });

  it('gives up a device after three consecutive failures of any kind', async () => {
    const { device, clock, events, engine } = await createCase([100_000]);
    const blocks = createBlocks(1);
    device.faults.push('DEVICE_LOST');
    device.openFaults.push('it does not open', 'it still does not');
    for (let i = 0; i < 8; i++) {
      await check(engine, blocks);
      await turns();
      clock.nowMs += 5_000;
    }
    assert.deepEqual(
      events.map((event) => (event.kind === 'device lost' ? event.pauseMs : event.kind)),
      [1_000, 5_000, null],
    );
    assert.equal(device.openCount, 1);
  });

  it('does not count failures that are far apart as consecutive', async () => {
    const { device, clock, events, engine } = await createCase([100_000]);
    const blocks = createBlocks(1);
    for (let i = 0; i < 5; i++) {
      device.faults.push('DEVICE_LOST');
      await check(engine, blocks);
      clock.nowMs += 1_000;
      await check(engine, blocks);
      await turns();
      clock.nowMs += 60_000;
    }
    assert.deepEqual(
      events.map((event) => (event.kind === 'device lost' ? event.pauseMs : event.kind)),
      Array.from({ length: 5 }, () => [1_000, 'device back']).flat(),
    );
  });

  it('uses the fallback and lowers the budget when memory is less than reported', async () => {
    const { device, events, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(3);
    device.usedBytes = 88_000;
    await check(engine, blocks);
    assert.equal(fallback.queryCount, 1);
    await check(engine, blocks);
    assert.deepEqual(
      events.map((event) => event.kind),
      ['out of memory'],
    );
    assert.ok(device.usedBytes <= 100_000);
  });

  it('evicts idle blocks when a search runs out of memory, and uses the fallback', async () => {
    const { device, events, fallback, engine } = await createCase([20_000]);
    const [a, b, c] = createBlocks(3) as [VectorBlock, VectorBlock, VectorBlock];
    for (const block of [a, b, c]) await check(engine, [block]);
    assert.equal(device.usedBytes, 15_000);
    for (let i = 0; i < 9; i++) {
      device.faults.push('OUT_OF_MEMORY');
      await check(engine, [c]);
    }
    assert.equal(fallback.queryCount, 9);
    // However often this happens, half of the budget remains: 9 000 bytes.
    assert.equal(engine.stats().deviceBytes, 7_000);
    const last = events.at(-1)!;
    assert.equal(last.kind === 'out of memory' && last.budgetBytes, 9_000);
    await check(engine, [c]);
    assert.equal(fallback.queryCount, 9);
  });

  it('uses the fallback and keeps the budget while the host has no memory', async () => {
    const { device, events, fallback, engine } = await createCase([20_000]);
    const [a, b] = createBlocks(2) as [VectorBlock, VectorBlock];
    await check(engine, [a]);
    device.faults.push('OUT_OF_HOST_MEMORY', 'OUT_OF_HOST_MEMORY');
    device.uploadFaults.push('OUT_OF_HOST_MEMORY');
    for (let i = 0; i < 2; i++) await check(engine, [a]);
    await check(engine, [b]);
    assert.equal(fallback.queryCount, 3);
    assert.equal(engine.bytesUsed(b.key).deviceBytes, 0);
    // Reported as one event until the device answers again.
    const kinds = () => events.map(({ kind }) => kind);
    assert.deepEqual(kinds(), ['out of host memory']);
    for (const block of [a, b]) await check(engine, [block]);
    assert.equal(fallback.queryCount, 3);
    assert.equal(engine.stats().deviceBytes, 10_000);
    device.faults.push('OUT_OF_HOST_MEMORY');
    await check(engine, [a]);
    assert.deepEqual(kinds(), ['out of host memory', 'out of host memory']);
    assert.equal(device.openCount, 1);
  });

  it('answers pending searches when it is closed', async () => {
    const { fake, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(2);
    await check(engine, blocks);
    fake.holdsMessages = true;
    const searched = Promise.all([check(engine, blocks), check(engine, createBlocks(1))]);
    await turns();
    await Promise.all([engine.close(), searched]);
    fake.holdsMessages = false;
    assert.equal(fallback.queryCount, 2);
    await assert.rejects(engine.search([queryFor(blocks)]), /the engine is not closed/);
  });

  it('rejects an aborted search, which the device skips', async () => {
    const { fake, device, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(1);
    await check(engine, blocks);
    const controller = new AbortController();
    fake.holdsMessages = true;
    const searched = engine.search([queryFor(blocks)], { signal: controller.signal });
    await turns();
    controller.abort(new Error('the client went away'));
    fake.holdsMessages = false;
    await assert.rejects(searched, /the client went away/);
    assert.deepEqual([device.searchCount, fallback.queryCount], [1, 0]);
    await check(engine, blocks);
  });

  it('takes two batches at once: one is aborted, and both survive the loss of the device', async () => {
    const { fake, device, fallback, engine } = await createCase([100_000]);
    const blocks = createBlocks(2);
    await check(engine, blocks);
    assert.equal(engine.batching?.inFlightMax, 2);
    const controller = new AbortController();
    fake.holdsMessages = true;
    const aborted = engine.search([queryFor(blocks)], { signal: controller.signal });
    const kept = check(engine, blocks);
    await turns();
    controller.abort(new Error('the client went away'));
    fake.holdsMessages = false;
    await assert.rejects(aborted, /the client went away/);
    await kept;
    assert.deepEqual([device.searchCount, fallback.queryCount], [2, 0]);
    assert.equal(device.searchesMax, 1);
    await Promise.all([check(engine, blocks), check(engine, blocks), check(engine, blocks)]);
    assert.equal(device.searchesMax, 2, 'the next search begins before one ends');
    device.faults.push('DEVICE_LOST');
    await Promise.all([check(engine, blocks), check(engine, blocks)]);
    assert.equal(fallback.queryCount, 2, 'the fallback answers both');
    assert.equal(engine.stats().lossCount, 1);
  });

  it('is unavailable without a device, and fails if no device opens', async () => {
    await assert.rejects(createFakeEngine(createFakeDevices([])), EngineUnavailable);
    const fake = createFakeDevices([1_000, 1_000]);
    for (const { openFaults } of fake.devices) openFaults.push('too old');
    await assert.rejects(createFakeEngine(fake), /^Error: too old$/);
    const one = createFakeDevices([1_000, 1_000]);
    one.devices[0]!.openFaults.push('too old');
    const events: CudaEvent[] = [];
    const engine = await createFakeEngine(one, { onEvent: (event) => events.push(event) });
    assert.equal(events.length, 1);
    assert.match(engine.describe(), /^brute force kernels on a fake with .* \(CUDA 12\.9\)$/);
    await engine.close();
  });
});
