// Exhaustive float32 search in onnxruntime-node: one MatMul and TopK over all rows or per chunk of rows,
// whichever is fastest for the case.

import { createSearchModel } from './onnx-model.js';
import {
  loadPackage,
  measure,
  type PeerAnswer,
  readData,
  readRequest,
  reply,
  splitKeys,
} from './peer.js';

interface Tensor {
  readonly data: Float32Array | BigInt64Array;
}

interface Session {
  run(inputs: Record<string, Tensor>): Promise<Record<string, Tensor>>;
  release(): Promise<void>;
}

interface OnnxRuntime {
  readonly InferenceSession: {
    create(model: Uint8Array, options: Record<string, unknown>): Promise<Session>;
  };
  readonly Tensor: new (type: 'float32', data: Float32Array, shape: number[]) => Tensor;
}

/** Rows per chunk; a number above the row count means one product over all rows. */
const CHUNK_ROWS = [8_192, 32_768, Number.POSITIVE_INFINITY];
/** Limit of the score matrix; larger ones were slower in every measurement. */
const SCORE_BYTES_MAX = 2 ** 31;

const request = readRequest();
const { rows, queries } = readData(request);
const { module: onnx, version } = loadPackage<OnnxRuntime>('onnxruntime-node');
const { rowCount, dimension, k, threadCount, cases } = request;

const best = new Map<string, { answer: Omit<PeerAnswer, 'note'>; note: string }>();
const sizes = CHUNK_ROWS.map((size) => Math.min(size, rowCount));
for (const chunkRows of new Set(sizes)) {
  // The last chunk must have at least k rows, so the chunk size is adjusted slightly.
  const chunkCount = Math.ceil(rowCount / chunkRows);
  const shape = { rowCount, dimension, chunkRows: Math.ceil(rowCount / chunkCount), k };
  const fitting = cases.filter(({ batchCount }) => {
    return batchCount * shape.chunkRows * 4 <= SCORE_BYTES_MAX;
  });
  if (fitting.length === 0) continue;
  const session = await onnx.InferenceSession.create(createSearchModel(rows, shape), {
    intraOpNumThreads: threadCount,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  });
  const search = async (from: number, count: number) => {
    const batch = queries.subarray(from * dimension, (from + count) * dimension);
    const input = new onnx.Tensor('float32', batch, [count, dimension]);
    const { rows: found } = await session.run({ queries: input });
    return found!.data as BigInt64Array;
  };
  for (const peerCase of fitting) {
    const answer = await measure(request, peerCase, search, splitKeys);
    const rate = best.get(peerCase.name)?.answer.timing.queriesPerSecond ?? 0;
    if (answer.timing.queriesPerSecond <= rate) continue;
    const note = chunkCount === 1 ? 'all rows at once' : `${chunkCount} chunks of rows`;
    best.set(peerCase.name, { answer, note: `${note}, ${threadCount} threads` });
  }
  await session.release();
}
reply({
  version,
  answers: [...best.values()].map(({ answer, note }) => ({ ...answer, note })),
});
