// The cuda engine on fake devices, with a fallback that counts its queries.

import type { Engine } from '../../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import {
  type CudaEngine,
  type CudaEngineOptions,
  createCudaEngine,
} from '../../../src/engine/cuda/cuda-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import type { FakeDevices } from './fake-devices.js';

export function createFallback(): Engine & { queryCount: number } {
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
