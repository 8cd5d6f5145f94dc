// Chooses the engine: the one requested, or the fastest one that answers the probe search on this machine.

import { type Logger, silentLogger } from '../common/logger.js';
import { withoutPaths } from '../common/without-paths.js';
import type { CounterName } from '../platform/metric-table.js';
import { hasNvidiaDriver, NO_DRIVER } from '../platform/nvidia-driver.js';
import { describeMissing } from '../platform/optional-package.js';
import { createInlinePool, type WorkerPool } from '../platform/pool.js';
import { unavailableReason } from '../platform/tensorflow-binding.js';
import { type Engine, type EngineName, EngineUnavailable } from './core/engine.js';
import { createReferenceEngine, createReferenceSearch } from './core/reference-engine.js';
import type { CudaEvent } from './cuda/cuda-device.js';
import {
  type CudaEngine,
  type CudaStats,
  createCudaEngine,
  findCudaDevices,
} from './cuda/cuda-engine.js';
import { ProbeError, probe } from './probe.js';
import { createSimdEngine, describeSimd } from './simd/simd-engine.js';
import {
  createTensorEngine,
  type TensorEngine,
  type TensorEngineOptions,
} from './tensor/tensor-engine.js';
import type { TensorDeviceName } from './tensor/tensor-worker.js';

interface ChosenEngine {
  readonly engine: Engine;
  /** Why this engine was chosen. Clients may read it, so it contains no file paths. */
  readonly reason: string;
  /** Counters of the engine, exported as metrics. */
  readonly readings: readonly EngineReading[];
}

interface EngineReading {
  readonly name: CounterName;
  read(): number;
}

export interface EngineOptions extends Pick<TensorEngineOptions, 'residentBytesMax' | 'workerUrl'> {
  readonly requested: 'auto' | EngineName;
  readonly pool: WorkerPool;
  /** The instruction set of the simd engine; null for the fastest available. */
  readonly simdTarget?: string | null;
  /** Bytes on each GPU that the cuda engine may use; null for nearly all free memory. */
  readonly deviceMemory?: number | null;
  /** Path of the cuda engine's addon; tests pass one that emulates a GPU. */
  readonly cudaAddonPath?: string;
  readonly logger?: Logger;
}

/** What the wasm engine computes with; not part of the default installation. */
const WASM_PACKAGES = ['@tensorflow/tfjs-core', '@tensorflow/tfjs-backend-wasm'];

/** Fastest first. */
const CANDIDATES: readonly {
  readonly name: EngineName;
  create(options: EngineOptions): Promise<Omit<ChosenEngine, 'readings'> & Partial<ChosenEngine>>;
}[] = [
  { name: 'cuda', create: createCuda },
  { name: 'tensorflow', create: createTensorflow },
  { name: 'simd', create: createSimd },
  { name: 'wasm', create: createWasm },
];

/** Rejects if the engine requested by name does not work on this machine. */
export async function createEngine(options: EngineOptions): Promise<ChosenEngine> {
  const { requested, pool, logger = silentLogger } = options;
  const failures: string[] = [];
  for (const { name, create } of CANDIDATES) {
    if (requested !== 'auto' && requested !== name) continue;
    try {
      const { engine, reason, readings = [] } = await create(options);
      if (requested === name) return { engine, reason: `requested by name: ${reason}`, readings };
      return { engine, reason: [reason, ...failures].join('; '), readings };
    } catch (error) {
      if (requested === name) throw error;
      const cause = error instanceof Error ? error.message : String(error);
      if (error instanceof EngineUnavailable) {
        logger.info({ cause }, `the ${name} engine is not available`);
        failures.push(`${name} is not available: ${publicCause(cause)}`);
        continue;
      }
      logger.warn({ error: cause }, `the ${name} engine does not work`);
      failures.push(`${name} does not work: ${publicCause(cause)}`);
    }
  }
  const reason = requested === 'reference' ? 'requested by name' : failures.join('; ');
  return { engine: createReferenceEngine({ pool }), reason, readings: [] };
}

/**
 * The cause without paths and without the advice after the first semicolon. Clients may read it; the log has
 * all of it.
 */
function publicCause(cause: string): string {
  return withoutPaths(cause.split('; ')[0]!);
}

async function createCuda(options: EngineOptions) {
  const { deviceMemory = null, cudaAddonPath: addonPath, logger = silentLogger } = options;
  const addon = addonPath === undefined ? {} : { addonPath };
  // Listing devices starts a process, which most machines can do without.
  if (options.requested === 'auto' && addonPath === undefined && !hasNvidiaDriver()) {
    throw new EngineUnavailable(NO_DRIVER);
  }
  // Rejects when there is no device, before a fallback is created.
  const { indexes: devices } = await findCudaDevices(addon);
  const losses: Error[] = [];
  const onEvent = (event: CudaEvent) => {
    if (event.kind === 'device lost') losses.push(event.error);
    logCudaEvent(logger, event);
  };
  const fallback = await createCudaFallback(options);
  const engine = await createCudaEngine({
    ...addon,
    ...{ devices, fallback, deviceMemory, onEvent },
  }).catch(async (error: unknown) => {
    await fallback.close();
    throw error;
  });
  await probe(engine);
  if (engine.stats().fallbackQueryCount > 0) {
    await engine.close();
    throw new ProbeError(losses[0]?.message ?? 'its fallback had to answer the probe search');
  }
  return {
    engine,
    reason: `${engine.describe()}; the ${fallback.name} engine searches what does not fit there`,
    readings: readingsOf(engine),
  };
}

const DEVICE_METRICS = {
  sagitta_device_fallback_queries_total: 'fallbackQueryCount',
  sagitta_device_undecided_queries_total: 'undecidedQueryCount',
  sagitta_device_repeated_queries_total: 'repeatedQueryCount',
  sagitta_device_coarse_queries_total: 'coarseQueryCount',
  sagitta_device_head_queries_total: 'headQueryCount',
  sagitta_device_abandoned_queries_total: 'abandonedQueryCount',
  sagitta_device_uploaded_bytes_total: 'uploadedBytes',
  sagitta_device_losses_total: 'lossCount',
} as const satisfies Partial<Record<CounterName, keyof CudaStats>>;

function readingsOf(engine: CudaEngine): EngineReading[] {
  const names = Object.keys(DEVICE_METRICS) as (keyof typeof DEVICE_METRICS)[];
  return names.map((name) => ({ name, read: () => engine.stats()[DEVICE_METRICS[name]] }));
}

/** Creates the simd engine, which also encodes rows, or the reference engine where that fails. */
async function createCudaFallback(options: EngineOptions): Promise<Engine> {
  try {
    return (await createSimd(options)).engine;
  } catch {
    return createReferenceEngine({ pool: options.pool });
  }
}

function logCudaEvent(logger: Logger, event: CudaEvent): void {
  switch (event.kind) {
    case 'device lost': {
      const { device, error, pauseMs } = event;
      const next =
        pauseMs === null ? 'it will not be retried' : `next attempt in ${pauseMs / 1000} s`;
      const message = `GPU ${device} has failed; the fallback engine answers; ${next}`;
      logger.error({ error: error.message }, message);
      break;
    }
    case 'kernels excluded': {
      const { device, kernels, error } = event;
      const message = `the ${kernels} kernels of GPU ${device} failed their check; others are used`;
      logger.error({ error: error.message }, message);
      break;
    }
    case 'device back':
      logger.info({ device: event.device }, 'the GPU works again');
      break;
    case 'out of memory': {
      const { device, budgetBytes } = event;
      logger.warn({ device, budgetBytes }, 'the GPU has less memory than expected for vectors');
      break;
    }
    case 'out of host memory': {
      const message =
        'the host has no memory left for calls to the GPU; the fallback engine answers';
      logger.warn({ device: event.device }, message);
      break;
    }
    case 'host memory not pinned': {
      const { device, bytes } = event;
      const message =
        'the system refuses to pin memory for copies to and from the GPU, which take longer; ' +
        'its limit on locked memory may be too low';
      logger.warn({ device, bytes }, message);
      break;
    }
  }
}

async function createSimd({ pool, simdTarget = null }: EngineOptions) {
  // The probe runs on this thread, so that the threads of the pool do not start before there is work for them.
  const probed = createSimdEngine({ pool: createInlinePool(), target: simdTarget });
  await probe(probed);
  await probed.close();
  return { engine: createSimdEngine({ pool, target: simdTarget }), reason: describeSimd() };
}

async function createWasm(options: EngineOptions) {
  const missing = describeMissing(WASM_PACKAGES);
  if (missing !== null) throw new EngineUnavailable(missing);
  const engine = await createTensor('wasm', options);
  const reason = `${engine.device!.name} works on this machine`;
  return { engine, reason, readings: [fallbackReading(engine)] };
}

/** The tensorflow engine runs without a GPU only if it was requested by name. */
async function createTensorflow(options: EngineOptions) {
  const needsGpu = options.requested === 'auto';
  const unavailable = unavailableReason({ needsGpu });
  if (unavailable !== null) throw new EngineUnavailable(unavailable);
  const engine = await createTensor('tensorflow', options);
  const { name, hasOwnMemory } = engine.device!;
  if (needsGpu && !hasOwnMemory) {
    await engine.close();
    throw new EngineUnavailable(`${name}: no GPU was found`);
  }
  return { engine, reason: `${name} works on this machine`, readings: [fallbackReading(engine)] };
}

function fallbackReading(engine: TensorEngine): EngineReading {
  return {
    name: 'sagitta_engine_fallbacks_total',
    read: () => engine.fallbackCount,
  };
}

async function createTensor(
  device: TensorDeviceName,
  { pool, logger = silentLogger, residentBytesMax, workerUrl }: EngineOptions,
): Promise<TensorEngine> {
  const failures: Error[] = [];
  const engine = await createTensorEngine({
    device,
    ...(residentBytesMax === undefined ? {} : { residentBytesMax }),
    ...(workerUrl === undefined ? {} : { workerUrl }),
    fallback: createReferenceSearch({ pool }),
    onThreadFailure: (error, isLast) => {
      failures.push(error);
      const next = isLast ? 'the reference engine answers from now on' : 'it will be restarted';
      logger.error({ error: error.message }, `the thread of the ${device} engine failed; ${next}`);
    },
  });
  await probe(engine);
  if (engine.fallbackCount > 0) {
    await engine.close();
    throw new ProbeError(failures[0]?.message ?? 'its device has no room for the probe search');
  }
  return engine;
}
