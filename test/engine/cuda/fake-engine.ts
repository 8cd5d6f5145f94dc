// The cuda engine on fake devices, with a fallback that counts its queries.

import { after } from 'node:test';
import type { VectorBlock } from '../../../src/common/types.js';
import type { Engine, SearchQuery } from '../../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import type { CudaEvent } from '../../../src/engine/cuda/cuda-device.js';
import {
  type CudaEngine,
  type CudaEngineOptions,
  createCudaEngine,
} from '../../../src/engine/cuda/cuda-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { assertTrueHits, bruteForce, createMultiBlockQuery, rowOf, SEED } from '../blocks.js';
import { createFakeDevices, type FakeDevices } from './fake-devices.js';

function createFallback(): Engine & { queryCount: number } {
  const reference = createReferenceEngine({ pool: createInlinePool() });
  const fallback = {
    ...reference,
    queryCount: 0,
    search(...[queries, options]: Parameters<Engine['search']>) {
      fallback.queryCount += queries.length;
      return reference.search(queries, options);
    },
  };
  return fallback;
}

/** The budget of a device is nine tenths of its memory. */
export function createFakeEngine(
  fake: FakeDevices,
  options: Partial<CudaEngineOptions> = {},
): Promise<CudaEngine> {
  const { kernels, connect } = fake;
  const deviceMemory = 10 ** 15;
  return createCudaEngine({
    fallback: createFallback(),
    fakes: { deviceCount: fake.devices.length, blockBytes: kernels.blockBytes },
    connect,
    deviceMemory,
    ...options,
  });
}

interface Clock {
  nowMs: number;
}

/** An engine on fake devices, with its events and a clock that the test sets. */
export async function createCase(memoryBytes: readonly number[], scale = 1) {
  const fake = createFakeDevices(memoryBytes, scale);
  const clock: Clock = { nowMs: 0 };
  const events: CudaEvent[] = [];
  const fallback = createFallback();
  const engine = await createFakeEngine(fake, {
    fallback,
    now: () => clock.nowMs,
    idleMs: 100,
    pausesMs: [1_000, 5_000],
    onEvent: (event) => events.push(event),
  });
  after(() => engine.close());
  return { fake, device: fake.devices[0]!, clock, events, fallback, engine };
}

export function queryFor(blocks: readonly VectorBlock[]): SearchQuery {
  const parts = blocks.map((block) => ({ block, rowCount: block.rowCount, rows: null }));
  return createMultiBlockQuery(parts, rowOf(blocks[0]!, 3), { k: 30 });
}

export async function check(engine: Engine, blocks: readonly VectorBlock[]): Promise<void> {
  const query = queryFor(blocks);
  const [hits] = await engine.search([query]);
  assertTrueHits(hits!, bruteForce(query), `${blocks.length} blocks, seed ${SEED}`);
}

export const turns = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve));
};
