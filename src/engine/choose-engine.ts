// Which engine answers: the one that was asked for, or the fastest that proves on a tiny search that
// it gives the reference's answer.

import { type Logger, silentLogger } from '../logger.js';
import type { WorkerPool } from '../pool.js';
import { METRICS, type VectorBlock } from '../types.js';
import type { Engine, EngineName, SearchHits, SearchQuery } from './engine.js';
import { createReferenceEngine, createReferenceSearch } from './reference-engine.js';
import { createTensorEngine, type TensorEngineOptions } from './tensor-engine.js';

export interface ChosenEngine {
  readonly engine: Engine;
  /** Why this one, in words for an operator. */
  readonly reason: string;
}

/** Rejects when an engine is asked for by name and does not work here. */
export async function createEngine(
  options: {
    requested: 'auto' | EngineName;
    pool: WorkerPool;
    logger?: Logger;
  } & Pick<TensorEngineOptions, 'residentBytesMax' | 'workerUrl'>,
): Promise<ChosenEngine> {
  const { requested, pool, logger = silentLogger, ...tensorOptions } = options;
  const reference = createReferenceEngine({ pool });
  if (requested === 'reference') return { engine: reference, reason: 'asked for by name' };
  const deaths: Error[] = [];
  try {
    const engine = await createTensorEngine({
      ...tensorOptions,
      fallback: createReferenceSearch({ pool }),
      onDeath: (error, isLast) => {
        deaths.push(error);
        const next = isLast ? 'the reference engine answers from now on' : 'it will be restarted';
        logger.error({ error: error.message }, `the thread of the wasm engine died; ${next}`);
      },
    });
    await prove(engine, reference);
    if (deaths[0] !== undefined) {
      // The probe was answered by the reference.
      await engine.close();
      throw deaths[0];
    }
    return {
      engine,
      reason: requested === 'wasm' ? 'asked for by name' : 'WebAssembly works on this machine',
    };
  } catch (error) {
    if (requested === 'wasm') throw error;
    const cause = error instanceof Error ? error.message : String(error);
    logger.warn(
      { error: cause },
      'the wasm engine does not work here; the reference engine answers',
    );
    return { engine: reference, reason: `the wasm engine does not work here: ${cause}` };
  }
}

/** Throws, and closes the engine, unless it answers a tiny search as the reference does. */
async function prove(engine: Engine, reference: Engine): Promise<void> {
  try {
    const block = createProbeBlock();
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
function createProbeBlock(): VectorBlock {
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
  return { key: 'engine probe', dimension, rowCount, values, ids, codes: null };
}
