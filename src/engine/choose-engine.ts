// Which engine answers: the one that was asked for, or the fastest that proves on a tiny search that
// it gives the reference's answer.

import { type Logger, silentLogger } from '../common/logger.js';
import { METRICS, type RowEncoder, type VectorBlock } from '../common/types.js';
import type { WorkerPool } from '../platform/pool.js';
import {
  type Engine,
  EngineAbsent,
  type EngineName,
  type SearchHits,
  type SearchQuery,
} from './core/engine.js';
import { createReferenceEngine, createReferenceSearch } from './core/reference-engine.js';
import type { CudaEvent } from './cuda/cuda-device.js';
import {
  type CudaEngine,
  type CudaStats,
  createCudaEngine,
  findCudaDevices,
} from './cuda/cuda-engine.js';
import { createSimdEngine, describeSimd } from './simd/simd-engine.js';
import {
  createTensorEngine,
  type TensorEngine,
  type TensorEngineOptions,
} from './tensor/tensor-engine.js';
import type { TensorDeviceName } from './tensor/tensor-worker.js';
import { whyNoGpu } from './tensor/tensorflow-device.js';

export interface ChosenEngine {
  readonly engine: Engine;
  /** Why this one, in words for an operator. */
  readonly reason: string;
  /** What it counts, for whoever watches it. */
  readonly gauges: readonly EngineGauge[];
}

export interface EngineGauge {
  /** By the conventions of Prometheus. */
  readonly name: string;
  readonly help: string;
  read(): number;
}

export interface EngineOptions extends Pick<TensorEngineOptions, 'residentBytesMax' | 'workerUrl'> {
  readonly requested: 'auto' | EngineName;
  readonly pool: WorkerPool;
  /** The instruction set of the simd engine; null for the best that there is. */
  readonly simdTarget?: string | null;
  /** Bytes on each GPU that the cuda engine may use; null for nearly all that is free. */
  readonly deviceMemory?: number | null;
  /** The addon of the cuda engine, for tests that emulate a GPU. */
  readonly cudaAddonPath?: string;
  readonly logger?: Logger;
}

/** The fastest first. */
const CANDIDATES: readonly {
  readonly name: EngineName;
  create(options: EngineOptions): Promise<Omit<ChosenEngine, 'gauges'> & Partial<ChosenEngine>>;
}[] = [
  { name: 'cuda', create: createCuda },
  { name: 'tensorflow', create: createTensorflow },
  { name: 'simd', create: createSimd },
  { name: 'wasm', create: createWasm },
];

/** Rejects when an engine is asked for by name and does not work here. */
export async function createEngine(options: EngineOptions): Promise<ChosenEngine> {
  const { requested, pool, logger = silentLogger } = options;
  const failures: string[] = [];
  for (const { name, create } of CANDIDATES) {
    if (requested !== 'auto' && requested !== name) continue;
    try {
      const { engine, reason, gauges = [] } = await create(options);
      if (requested === name) return { engine, reason: `asked for by name: ${reason}`, gauges };
      return { engine, reason: [reason, ...failures].join('; '), gauges };
    } catch (error) {
      if (requested === name) throw error;
      const cause = error instanceof Error ? error.message : String(error);
      if (error instanceof EngineAbsent) {
        logger.info({ cause }, `the ${name} engine is not used`);
        failures.push(`${name} is not used: ${cause}`);
        continue;
      }
      logger.warn({ error: cause }, `the ${name} engine does not work here`);
      failures.push(`${name} does not work here: ${cause}`);
    }
  }
  const reason = requested === 'reference' ? 'asked for by name' : failures.join('; ');
  return { engine: createReferenceEngine({ pool }), reason, gauges: [] };
}

async function createCuda(options: EngineOptions) {
  const { pool, deviceMemory = null, cudaAddonPath: addonPath, logger = silentLogger } = options;
  const addon = addonPath === undefined ? {} : { addonPath };
  // Before a fallback is made for nothing.
  findCudaDevices(addon);
  const losses: Error[] = [];
  const onEvent = (event: CudaEvent) => {
    if (event.kind === 'device lost') losses.push(event.error);
    logCudaEvent(logger, event);
  };
  const fallback = await createCudaFallback(options);
  const engine = await createCudaEngine({ ...addon, fallback, deviceMemory, onEvent }).catch(
    async (error: unknown) => {
      await fallback.close();
      throw error;
    },
  );
  await prove(engine, createReferenceEngine({ pool }));
  if (engine.stats().fallbackQueryCount > 0) {
    await engine.close();
    throw new ProbeError(losses[0]?.message ?? 'a probe was answered by its fallback');
  }
  return {
    engine,
    reason: `${engine.describe()}; the ${fallback.name} engine answers what has no room there`,
    gauges: gaugesOf(engine),
  };
}

function gaugesOf(engine: CudaEngine): EngineGauge[] {
  const gauge = (name: string, what: keyof CudaStats, help: string): EngineGauge => ({
    name: `sagitta_device_${name}_total`,
    help,
    read: () => engine.stats()[what],
  });
  return [
    gauge('fallback_queries', 'fallbackQueryCount', 'Queries of which the CPU answered a part.'),
    gauge('undecided_queries', 'undecidedQueryCount', 'Those that a device could not decide.'),
    gauge('uploaded_bytes', 'uploadedBytes', 'Rows that went to devices.'),
    gauge('losses', 'lossCount', 'How often a device was lost.'),
  ];
}

/** Makes the codes, too, where it is the simd engine. */
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
      const next = pauseMs === null ? 'it stays off' : `it is tried again in ${pauseMs / 1000} s`;
      const message = `GPU ${device} does not answer; the fallback does, and ${next}`;
      logger.error({ error: error.message }, message);
      break;
    }
    case 'device back':
      logger.info({ device: event.device }, 'the GPU answers again');
      break;
    case 'out of memory': {
      const { device, budgetBytes } = event;
      logger.warn({ device, budgetBytes }, 'the GPU has less memory than expected for vectors');
      break;
    }
  }
}

async function createSimd({ pool, simdTarget = null }: EngineOptions) {
  const engine = createSimdEngine({ pool, target: simdTarget });
  await prove(engine, createReferenceEngine({ pool }));
  return { engine, reason: describeSimd() };
}

async function createWasm(options: EngineOptions) {
  const engine = await createTensor('wasm', options);
  const reason = `${engine.device!.name} works on this machine`;
  return { engine, reason, gauges: [fallbackGauge(engine)] };
}

/** Asked for by name, it may run without a GPU. */
async function createTensorflow(options: EngineOptions) {
  const isOnlyWithGpu = options.requested === 'auto';
  const absence = isOnlyWithGpu ? whyNoGpu() : null;
  if (absence !== null) throw new EngineAbsent(absence);
  const engine = await createTensor('tensorflow', options);
  const { name, hasOwnMemory } = engine.device!;
  if (isOnlyWithGpu && !hasOwnMemory) {
    await engine.close();
    throw new EngineAbsent(`${name}: it found no GPU`);
  }
  return { engine, reason: `${name} works on this machine`, gauges: [fallbackGauge(engine)] };
}

function fallbackGauge(engine: TensorEngine): EngineGauge {
  return {
    name: 'sagitta_engine_fallbacks_total',
    help: 'Searches of a segment that the reference engine answered in place of the tensor engine.',
    read: () => engine.fallbackCount,
  };
}

async function createTensor(
  device: TensorDeviceName,
  { pool, logger = silentLogger, residentBytesMax, workerUrl }: EngineOptions,
): Promise<TensorEngine> {
  const deaths: Error[] = [];
  const engine = await createTensorEngine({
    device,
    ...(residentBytesMax === undefined ? {} : { residentBytesMax }),
    ...(workerUrl === undefined ? {} : { workerUrl }),
    fallback: createReferenceSearch({ pool }),
    onDeath: (error, isLast) => {
      deaths.push(error);
      const next = isLast ? 'the reference engine answers from now on' : 'it will be restarted';
      logger.error({ error: error.message }, `the thread of the ${device} engine died; ${next}`);
    },
  });
  await prove(engine, createReferenceEngine({ pool }));
  if (engine.fallbackCount > 0) {
    await engine.close();
    throw new ProbeError(deaths[0]?.message ?? 'its device has no room for a probe');
  }
  return engine;
}

/** An engine starts, and does not give the reference's answer, or gives none of its own. */
export class ProbeError extends Error {}

/** Throws, and closes the engine, unless it answers a tiny search as the reference does. */
async function prove(engine: Engine, reference: Engine): Promise<void> {
  try {
    const block = createProbeBlock(engine.rowEncoder);
    const parts = [{ block, rowCount: block.rowCount, rows: null }];
    const queries = METRICS.map((metric): SearchQuery => {
      const vector = block.values.slice(0, block.dimension);
      return { vector, metric, k: 10, views: parts, after: null, scoreMin: null };
    });
    const expected = await reference.search(queries);
    const actual = await engine.search(queries);
    engine.unload(block.key);
    if (!expected.every((hits, index) => haveSameAnswer(hits, actual[index]!))) {
      throw new ProbeError('its answer to a probe is not that of the reference engine');
    }
  } catch (error) {
    await engine.close();
    if (error instanceof ProbeError) throw error;
    throw new ProbeError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function haveSameAnswer(left: SearchHits, right: SearchHits): boolean {
  return (
    left.rows.length === right.rows.length &&
    left.rows.every((row, index) => row === right.rows[index]) &&
    left.scores.every((score, index) => Object.is(score, right.scores[index]))
  );
}

/** 16 500 rows of 8 values that follow a fixed pattern: more than a chunk. The ids are the row numbers. */
function createProbeBlock(encoder: RowEncoder | null): VectorBlock {
  const dimension = 8;
  const rowCount = 16_500;
  const idLength = 5;
  const values = new Float32Array(new SharedArrayBuffer(rowCount * dimension * 4));
  for (let i = 0; i < values.length; i++) values[i] = Math.sin(i * 12.9898) * 2;
  const offsets = new Int32Array(new SharedArrayBuffer((rowCount + 1) * 4));
  const bytes = new Uint8Array(new SharedArrayBuffer(rowCount * idLength));
  for (let row = 0; row < rowCount; row++) {
    bytes.set(Buffer.from(String(row).padStart(idLength, '0')), row * idLength);
    offsets[row + 1] = (row + 1) * idLength;
  }
  const ids = { offsets, bytes };
  let codes: Uint8Array | null = null;
  if (encoder !== null) {
    codes = encoder.allocate(encoder.byteLength(rowCount, dimension));
    encoder.encode({ values, dimension, from: 0, to: rowCount, codes });
  }
  return { key: 'engine probe', dimension, rowCount, values, ids, codes };
}
