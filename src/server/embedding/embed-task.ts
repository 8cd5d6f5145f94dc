// The task of the threads that run the built-in model. A thread loads the model once, on the GPU where there is one that
// TensorFlow can use, otherwise on the CPU.

import { assert, SagittaError } from '../../common/errors.js';
import type { Task } from '../../platform/pool.js';
import { loadTensorflow, unavailableReason } from '../../platform/tensorflow-binding.js';
import { readVocabulary, readWeights } from './model-files.js';
import { type Operations, SentenceEncoder } from './sentence-encoder.js';
import { SentenceModel, type TextIssue } from './sentence-model.js';
import { WordPieces } from './word-pieces.js';

let model: SentenceModel | null = null;
let failure: unknown = null;

/** Loads the model for this thread. A failure becomes the error of later tasks. */
export async function loadModel(): Promise<void> {
  try {
    const wordPieces = new WordPieces(readVocabulary());
    model = new SentenceModel(
      wordPieces,
      new SentenceEncoder(await startTensorFlow(), readWeights()),
    );
  } catch (error) {
    failure = error;
  }
}

/** Turns texts into vectors, or says what is wrong with the first text that has none. */
export const embedTextsTask: Task<readonly string[], Float32Array | TextIssue> = {
  name: 'embedding.embed',
  run(texts) {
    if (failure !== null) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      throw new SagittaError('embedding_failed', `The built-in model cannot be used: ${reason}`);
    }
    assert(model !== null, 'the thread has loaded the model');
    return model.embed(texts);
  },
  transfer: (output) => (output instanceof Float32Array ? [output.buffer as ArrayBuffer] : []),
};

/** Whether one thread uses a GPU, instead of several that use a core each. */
export function usesGpu(): boolean {
  return unavailableReason({ needsGpu: true }) === null;
}

async function startTensorFlow(): Promise<Operations> {
  if (usesGpu()) return loadTensorflow<Operations>();
  const { startWasmBackend } = await import('../../platform/wasm-backend.js');
  const { useNativeProducts } = await import('../../platform/native-products.js');
  await startWasmBackend({ isSingleThreaded: true });
  useNativeProducts();
  return import('@tensorflow/tfjs-core');
}
