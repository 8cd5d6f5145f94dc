// The built-in model for the main thread: distributes texts over a pool of threads, which start with the first text.

import { availableParallelism } from 'node:os';
import { SagittaError } from '../../common/errors.js';
import { forEachAtOnce } from '../../common/for-each-at-once.js';
import { createThreadPool, type ThreadPool } from '../../platform/pool.js';
import { embedTextsTask, usesGpu } from './embed-task.js';
import { describeMissingModel, installedModel } from './model-files.js';
import { SENTENCE_DIMENSION } from './sentence-encoder.js';
import type { TextIssue } from './sentence-model.js';

/** Each thread takes about 180 MB. */
const THREADS_MAX = 4;

/**
 * The size of a task: about 500 word pieces, which take a tenth of a second. A query that arrives during an import waits
 * for one task of each thread.
 */
const TASK_CHARACTERS_MAX = 2_400;

/** A text without a vector. */
export class TextError extends Error {
  readonly issue: TextIssue;

  constructor(issue: TextIssue) {
    super(issue.detail);
    this.issue = issue;
  }
}

export class BuiltinModel {
  #pool: ThreadPool | null = null;
  /** Null until the model has been found, so that it can be installed while the server runs. */
  #installed: string | null = null;

  /** The installed model's name and version. Throws `embedding_not_configured` if it is not installed. */
  requireInstalled(): string {
    if (this.#installed !== null) return this.#installed;
    const missing = describeMissingModel();
    if (missing === null) {
      this.#installed = installedModel();
      return this.#installed;
    }
    throw new SagittaError(
      'embedding_not_configured',
      `The built-in model is missing: ${missing}.`,
    );
  }

  /**
   * The unit vectors of texts, row-major [texts.length, SENTENCE_DIMENSION], by the model that a collection uses. Rejects
   * with TextError, `embedding_not_configured` for another model than the installed one, `embedding_failed`,
   * `overloaded` and the signal's reason.
   */
  async embed(texts: readonly string[], model: string, signal: AbortSignal): Promise<Float32Array> {
    const installed = this.requireInstalled();
    if (model !== installed) {
      throw new SagittaError(
        'embedding_not_configured',
        `The collection's vectors were made by the built-in model ${model}, and this server has ${installed}, whose vectors are not comparable with them. Install the former, or load the texts into a new collection.`,
      );
    }
    this.#pool ??= createThreadPool({
      module: 'server/embedding/model-worker.js',
      threadCount: usesGpu() ? 1 : Math.min(availableParallelism(), THREADS_MAX),
    });
    const pool = this.#pool;
    const vectors = new Float32Array(texts.length * SENTENCE_DIMENSION);
    await forEachAtOnce(tasksOf(texts), pool.threadCount, async (indexes) => {
      signal.throwIfAborted();
      const found = await pool.run(
        embedTextsTask,
        indexes.map((index) => texts[index]!),
        { mayBeRefused: true },
      );
      if (!(found instanceof Float32Array)) {
        throw new TextError({ ...found, index: indexes[found.index]! });
      }
      for (const [i, index] of indexes.entries()) {
        const at = i * SENTENCE_DIMENSION;
        vectors.set(found.subarray(at, at + SENTENCE_DIMENSION), index * SENTENCE_DIMENSION);
      }
    });
    return vectors;
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }
}

/** Groups texts of similar lengths, by their indexes. */
function tasksOf(texts: readonly string[]): readonly (readonly number[])[] {
  const byLength = [...texts.keys()].sort((a, b) => texts[a]!.length - texts[b]!.length);
  const tasks: number[][] = [];
  let characters = Number.POSITIVE_INFINITY;
  for (const index of byLength) {
    characters += texts[index]!.length;
    if (characters > TASK_CHARACTERS_MAX) {
      tasks.push([]);
      characters = texts[index]!.length;
    }
    tasks.at(-1)!.push(index);
  }
  return tasks;
}
