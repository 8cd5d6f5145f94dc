// Which engine answers: the one that was asked for, or the fastest that proves on a tiny search that
// it gives the reference's answer.

import { type Logger, silentLogger } from '../logger.js';
import type { WorkerPool } from '../pool.js';
import { METRICS, type RowEncoder, type VectorBlock } from '../types.js';
import type { Engine, EngineName, SearchHits, SearchQuery } from './engine.js';
import { createReferenceEngine, createReferenceSearch } from './reference-engine.js';
import { createSimdEngine, describeSimd } from './simd-engine.js';
import { createTensorEngine, type TensorEngineOptions } from './tensor-engine.js';

export interface ChosenEngine {
  readonly engine: Engine;
  /** Why this one, in words for an operator. */
  readonly reason: string;
}

export interface EngineOptions extends Pick<TensorEngineOptions, 'residentBytesMax' | 'workerUrl'> {
  readonly requested: 'auto' | EngineName;
  readonly pool: WorkerPool;
  /** The instruction set of the simd engine; null for the best that there is. */
  readonly simdTarget?: string | null;
  readonly logger?: Logger;
}

/** The fastest first. */
const CANDIDATES: readonly {
  readonly name: EngineName;
  create(options: EngineOptions): Promise<{ engine: Engine; reason: string }>;
}[] = [
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
      const { engine, reason } = await create(options);
      if (requested === name) return { engine, reason: `asked for by name: ${reason}` };
      return { engine, reason: [reason, ...failures].join('; ') };
    } catch (error) {
      if (requested === name) throw error;
      const cause = error instanceof Error ? error.message : String(error);
      logger.warn({ error: cause }, `the ${name} engine does not work here`);
      failures.push(`${name} does not work here: ${cause}`);
    }
  }
  const reason = requested === 'reference' ? 'asked for by name' : failures.join('; ');
  return { engine: createReferenceEngine({ pool }), reason };
}

async function createSimd({ pool, simdTarget = null }: EngineOptions) {
  const engine = createSimdEngine({ pool, target: simdTarget });
  await prove(engine, createReferenceEngine({ pool }));
  return { engine, reason: describeSimd() };
}

async function createWasm({ pool, logger = silentLogger, ...options }: EngineOptions) {
  const deaths: Error[] = [];
  const engine = await createTensorEngine({
    ...options,
    fallback: createReferenceSearch({ pool }),
    onDeath: (error, isLast) => {
      deaths.push(error);
      const next = isLast ? 'the reference engine answers from now on' : 'it will be restarted';
      logger.error({ error: error.message }, `the thread of the wasm engine died; ${next}`);
    },
  });
  await prove(engine, createReferenceEngine({ pool }));
  if (deaths[0] !== undefined) {
    // The probe was answered by the reference.
    await engine.close();
    throw deaths[0];
  }
  return { engine, reason: 'WebAssembly works on this machine' };
}

/** Throws, and closes the engine, unless it answers a tiny search as the reference does. */
async function prove(engine: Engine, reference: Engine): Promise<void> {
  try {
    const block = createProbeBlock(engine.rowEncoder);
    const parts = [{ block, rowCount: block.rowCount, rows: null }];
    const queries = METRICS.map((metric): SearchQuery => {
      const vector = block.values.slice(0, block.dimension);
      return { vector, metric, k: 10, parts, after: null, scoreMin: null };
    });
    const expected = await reference.search(queries);
    const actual = await engine.search(queries);
    engine.unload(block.key);
    if (!expected.every((hits, index) => haveSameAnswer(hits, actual[index]!))) {
      throw new Error('its answer to a probe is not that of the reference engine');
    }
  } catch (error) {
    await engine.close();
    throw error;
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
