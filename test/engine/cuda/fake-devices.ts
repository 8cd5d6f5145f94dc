// Fake GPUs: kernels in JavaScript that search the uploaded rows by brute force, count calls, and fail
// as the test requests.

import assert from 'node:assert/strict';
import { METRICS, type VectorBlock } from '../../../src/common/types.js';
import type { SearchQuery } from '../../../src/engine/core/engine.js';
import type { KernelBatch } from '../../../src/engine/core/kernel-batch.js';
import type { CudaKernels, DeviceHits } from '../../../src/engine/cuda/cuda-kernels.js';
import type { ConnectDevice, DeviceLink } from '../../../src/engine/cuda/cuda-link.js';
import { DeviceProgram, type DeviceRequest } from '../../../src/engine/cuda/cuda-program.js';
import { bruteForce } from '../blocks.js';

type MemoryFault = 'OUT_OF_MEMORY' | 'OUT_OF_HOST_MEMORY';
type Fault = 'DEVICE_LOST' | MemoryFault | 'undecided';

interface FakeBlock {
  readonly device: number;
  readonly dimension: number;
  values: Float32Array;
  rowCount: number;
  rowCapacity: number;
  hasValues: boolean;
  hasHead: boolean;
}

interface RunningSearch {
  /** The ticket of its device. */
  readonly device: number;
  readonly batch: KernelBatch;
  readonly residents: readonly FakeBlock[];
}

interface FakeDevice {
  readonly memoryBytes: number;
  openCount: number;
  searchCount: number;
  /** The largest number of searches that were in progress at a time. */
  searchesMax: number;
  /** The calls in order: 'search', and from..to for each `extend`. */
  readonly calls: string[];
  /** The outcomes of the next searches, in order. */
  readonly faults: Fault[];
  /** The outcomes of the next calls of `extend`, in order. */
  readonly uploadFaults: MemoryFault[];
  /** The messages with which the next calls of `open` fail. */
  readonly openFaults: string[];
  usedBytes: number;
}

export interface FakeDevices {
  readonly devices: FakeDevice[];
  readonly kernels: CudaKernels;
  readonly connect: ConnectDevice;
  /** While true, uploads are paused. */
  holdsUploads: boolean;
  /** While true, messages are not handled. */
  holdsMessages: boolean;
}

/** Codes take one byte per dimension and values four, times `scale` to simulate large blocks. */
function fakeBlockBytes(scale: number): CudaKernels['blockBytes'] {
  return (dimension, rowCapacity, { hasValues, hasHead }) =>
    scale * rowCapacity * dimension * (hasValues ? (hasHead ? 5.25 : 5) : 1);
}

export function createFakeDevices(memoryBytes: readonly number[], scale = 1): FakeDevices {
  const blockBytes = fakeBlockBytes(scale);
  const devices = memoryBytes.map((bytes): FakeDevice => {
    const nothing = { openCount: 0, searchCount: 0, searchesMax: 0, usedBytes: 0 };
    return {
      memoryBytes: bytes,
      calls: [],
      faults: [],
      uploadFaults: [],
      openFaults: [],
      ...nothing,
    };
  });
  const blocks = new Map<number, FakeBlock>();
  const opened = new Map<number, number>();
  const running: RunningSearch[] = [];
  let ticketCount = 1;

  const bytesOf = (block: FakeBlock) => blockBytes(block.dimension, block.rowCapacity, block);
  const deviceOf = (ticket: number): FakeDevice => {
    const index = opened.get(ticket);
    assert.ok(index !== undefined, 'the device is open');
    return devices[index]!;
  };
  const blockOf = (ticket: number): FakeBlock => {
    const block = blocks.get(ticket);
    assert.ok(block !== undefined, 'the block exists');
    return block;
  };
  const isIdle = (device: number) => running.every((search) => search.device !== device);
  const destroy = (ticket: number) => {
    const block = blockOf(ticket);
    deviceOf(block.device).usedBytes -= bytesOf(block);
    blocks.delete(ticket);
  };

  const kernels: CudaKernels = {
    blockBytes,
    open(index) {
      const fault = devices[index]!.openFaults.shift();
      if (fault !== undefined) throw new Error(fault);
      devices[index]!.openCount++;
      opened.set(ticketCount, index);
      return ticketCount++;
    },
    describe(device) {
      const { memoryBytes: bytes } = deviceOf(device);
      const versions = { driverVersion: 13_000, runtimeVersion: 12_090 };
      const shape = { computeCapability: 90, multiprocessorCount: 1 };
      const memory = { memoryBytes: bytes, freeBytes: bytes };
      return { name: 'a fake', kernels: 'brute force', ...shape, ...versions, ...memory };
    },
    ping: () => {},
    close(device) {
      while (!isIdle(device))
        running.splice(
          running.findIndex((search) => search.device === device),
          1,
        );
      for (const [ticket, block] of blocks) if (block.device === device) destroy(ticket);
      opened.delete(device);
    },
    createBlock(device, dimension) {
      const empty = {
        values: new Float32Array(0),
        rowCount: 0,
        rowCapacity: 0,
        hasValues: false,
        hasHead: false,
      };
      blocks.set(ticketCount, { device, dimension, ...empty });
      return ticketCount++;
    },
    reserve(ticket, rowCapacity, parts) {
      const block = blockOf(ticket);
      const device = deviceOf(block.device);
      assert.ok(rowCapacity >= block.rowCount, 'rows stay');
      assert.ok(isIdle(block.device), 'blocks change between searches');
      const { hasValues, hasHead } = parts;
      assert.ok(!hasValues || block.hasValues || block.rowCount === 0, 'values do not come back');
      assert.ok(!hasHead || block.hasHead || block.rowCount === 0, 'head tiles do not come late');
      const added = blockBytes(block.dimension, rowCapacity, parts) - bytesOf(block);
      if (device.usedBytes + added > device.memoryBytes) return false;
      device.usedBytes += added;
      Object.assign(block, { rowCapacity, hasValues, hasHead });
      return true;
    },
    extend(ticket, { values, codes, head }, to) {
      const block = blockOf(ticket);
      assert.ok(to <= block.rowCapacity && to >= block.rowCount, 'there is room for the rows');
      assert.ok(codes === null || codes.length > 0);
      assert.ok(!block.hasHead || head !== null, 'the head tiles come with the rows');
      const fault = deviceOf(block.device).uploadFaults.shift();
      if (fault !== undefined) fail(fault);
      deviceOf(block.device).calls.push(`${block.rowCount}..${to}`);
      const grown = new Float32Array(to * block.dimension);
      grown.set(block.values);
      grown.set(
        values.subarray(block.rowCount * block.dimension, to * block.dimension),
        block.rowCount * block.dimension,
      );
      Object.assign(block, { values: grown, rowCount: to });
    },
    destroyBlock(ticket) {
      assert.ok(isIdle(blockOf(ticket).device), 'blocks are destroyed between searches');
      destroy(ticket);
    },
    beginSearch(ticket, batch, residents) {
      const device = deviceOf(ticket);
      device.searchCount++;
      device.calls.push('search');
      running.push({ device: ticket, batch, residents: [...residents].map(blockOf) });
      const count = running.filter((search) => search.device === ticket).length;
      assert.ok(count <= 2, 'at most two searches are in progress');
      device.searchesMax = Math.max(device.searchesMax, count);
    },
    endSearch(ticket, batch) {
      const [ended] = running.splice(
        running.findIndex((search) => search.device === ticket),
        1,
      );
      assert.equal(ended?.batch, batch, 'searches end in the order of their beginnings');
      const fault = deviceOf(ticket).faults.shift();
      if (fault !== undefined && fault !== 'undecided') fail(fault);
      return searchFake(batch, ended.residents, ticket, fault === 'undecided');
    },
  };

  const fake: FakeDevices = {
    devices,
    kernels,
    holdsUploads: false,
    holdsMessages: false,
    connect: (index, on) => connectFake(fake, index, on),
  };
  return fake;
}

function fail(code: string): never {
  throw Object.assign(new Error(`${code} for a test`), { code });
}

/** A fake thread: messages are cloned and handled later, in order. */
function connectFake(
  fake: FakeDevices,
  deviceIndex: number,
  on: Parameters<ConnectDevice>[1],
): DeviceLink {
  const requests: DeviceRequest[] = [];
  let program: DeviceProgram | null = null;
  let isEnded = false;
  const attempt = (step: () => void) => {
    if (isEnded) return;
    try {
      step();
    } catch (error) {
      isEnded = true;
      program?.close();
      setImmediate(() => on.end(error as Error));
    }
  };
  const defer = (work: 'uploads' | 'answers', step: () => void) =>
    setImmediate(() => {
      if (isEnded) return;
      if (work === 'uploads' && fake.holdsUploads) defer(work, step);
      else attempt(step);
    });
  const handleNext = () => {
    if (isEnded || requests.length === 0) return;
    if (fake.holdsMessages) setImmediate(handleNext);
    else attempt(() => program!.handle(requests.shift()!));
  };
  setImmediate(() =>
    attempt(() => {
      const { kernels } = fake;
      const reply = on.reply;
      program = new DeviceProgram({ kernels, deviceIndex, kernelsName: null, reply, defer });
    }),
  );
  return {
    post(request, transfer) {
      requests.push(structuredClone(request, { transfer }));
      setImmediate(handleNext);
    },
    async close() {
      if (!isEnded) program?.close();
      isEnded = true;
      on.end(new Error('closed'));
    },
  };
}

function searchFake(
  batch: KernelBatch,
  residents: readonly FakeBlock[],
  device: number,
  isUndecided: boolean,
): DeviceHits {
  const blocks = batch.blocks.map(({ rowCount, values, idOffsets, idBytes }, i): VectorBlock => {
    const resident = residents[i]!;
    assert.equal(resident.device, device, 'a block of this device');
    const ids = { offsets: idOffsets, bytes: idBytes };
    const of = { key: String(i), dimension: batch.dimension, rowCount, ids, codes: null };
    return { ...of, values: resident.hasValues ? resident.values : values };
  });
  const answers = Array.from(batch.ks, (k, query) => {
    if (isUndecided && query === 0) return null;
    const hits = bruteForce(queryOf(batch, query, blocks, residents));
    const passing = hits.scores.filter((score) => score >= batch.floors[query]!).length;
    const count = Math.min(passing, k);
    const { viewIndexes, rows, scores, scannedCount } = hits;
    return {
      views: viewIndexes.slice(0, count),
      rows: rows.slice(0, count),
      scores,
      count,
      scannedCount,
    };
  });
  const offsets = new Uint32Array(answers.length + 1);
  for (const [i, answer] of answers.entries()) offsets[i + 1] = offsets[i]! + (answer?.count ?? 0);
  return {
    offsets,
    views: Uint32Array.from(answers.flatMap((answer) => answer?.views ?? [])),
    rows: Uint32Array.from(answers.flatMap((answer) => answer?.rows ?? [])),
    scores: Float64Array.from(
      answers.flatMap((answer) => answer?.scores.slice(0, answer.count) ?? []),
    ),
    scannedCounts: Float64Array.from(answers, (answer) => answer?.scannedCount ?? 0),
    rescoredCounts: Float64Array.from(answers, (answer) => answer?.count ?? 0),
    isDecided: Uint8Array.from(answers, (answer) => (answer === null ? 0 : 1)),
    times: {
      uploadMs: 0,
      scanMs: 0,
      selectMs: 0,
      rescoreMs: 0,
      totalMs: 0,
      prepareMs: 0,
      finishMs: 0,
      readbackBytes: 0,
      repeatedQueryCount: isUndecided ? 1 : 0,
      unpinnedBytes: 0,
      coarseQueryCount: isUndecided ? 0 : 1,
      headQueryCount: 0,
      abandonedQueryCount: isUndecided ? 1 : 0,
    },
  };
}

function queryOf(
  batch: KernelBatch,
  query: number,
  blocks: readonly VectorBlock[],
  residents: readonly FakeBlock[],
): SearchQuery {
  const { dimension, vectors, viewRanges, afterOffsets, bitmaps } = batch;
  const views: SearchQuery['views'][number][] = [];
  const first = viewRanges[2 * query]!;
  for (let view = first; view < first + viewRanges[2 * query + 1]!; view++) {
    const [block, rowCount, bitmap] = batch.views.subarray(3 * view) as unknown as number[];
    assert.ok(rowCount! <= residents[block!]!.rowCount, 'the rows are resident');
    const words = bitmap === 0 ? null : bitmaps[bitmap! - 1]!;
    const rows = words === null ? null : { length: rowCount!, words };
    views.push({ block: blocks[block!]!, rowCount: rowCount!, rows });
  }
  const id = batch.afterIds.slice(afterOffsets[query]!, afterOffsets[query + 1]!);
  return {
    vector: vectors.slice(query * dimension, (query + 1) * dimension),
    metric: METRICS[batch.metrics[query]!]!,
    // The score limit is applied afterwards.
    k: Number.POSITIVE_INFINITY,
    views,
    after: id.length === 0 ? null : { score: batch.afterScores[query]!, id },
    scoreMin: null,
  };
}
