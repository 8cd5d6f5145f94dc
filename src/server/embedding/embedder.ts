// Turns texts into vectors with the built-in model, or through a configured endpoint with the protocol of OpenAI
// (`POST …/embeddings`). Calls of endpoints are batched, retried after transient failures, and suspended while the
// endpoint keeps failing. Returned vectors are finite and have the requested dimension.

import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '../../common/cancel-signal.js';
import { CircuitBreaker } from '../../common/circuit-breaker.js';
import { SagittaError } from '../../common/errors.js';
import { forEachAtOnce } from '../../common/for-each-at-once.js';
import type { EmbeddingSource } from '../../common/types.js';
import { BUILTIN, type Config, type EmbeddingEndpoint } from '../../platform/config.js';
import type { Metrics } from '../../platform/metrics.js';
import { readVector } from '../bodies/dense-vectors.js';
import { BuiltinModel } from './builtin-model.js';

export type EmbeddingOptions = Pick<
  Config,
  'embedding' | 'embeddingTimeoutMs' | 'embeddingAttempts' | 'embeddingBatchTexts'
>;

/** Concurrent calls of one request; more would monopolize the endpoint. */
const CALLS_MAX = 4;
/** The delay before the second attempt, which doubles before each later one. */
const BACKOFF_MS_BASE = 200;
/** A longer Retry-After is passed on to the client. */
const RETRY_AFTER_MS_MAX = 5_000;
const BREAKER = { failuresMax: 5, coolDownMs: 10_000 };
/** Bound the bytes of a reply: a base, and bytes for each number. */
const REPLY_BYTES_BASE = 64 * 1024;
const NUMBER_BYTES_MAX = 32;

type Outcome = 'success' | 'failure' | 'rejected';

interface Target {
  readonly endpoint: EmbeddingEndpoint;
  readonly source: EmbeddingSource;
  readonly dimension: number;
}

/** A failure that may not recur at the next attempt. */
class TransientFailure extends Error {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs = 0) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

export class Embedder {
  readonly builtin = new BuiltinModel();
  readonly #options: EmbeddingOptions;
  readonly #breakers = new Map<string, CircuitBreaker>();
  readonly #countCalls: (amount: number, labels: { outcome: Outcome }) => void;
  readonly #countTexts: (amount: number) => void;
  readonly #observeSeconds: (seconds: number) => void;

  constructor(options: EmbeddingOptions, metrics: Metrics) {
    this.#options = options;
    for (const { name } of options.embedding) {
      this.#breakers.set(name, new CircuitBreaker(BREAKER, () => performance.now()));
    }
    this.#countCalls = metrics.addCounter('sagitta_embedding_calls_total');
    this.#countTexts = metrics.addCounter('sagitta_embedding_texts_total');
    this.#observeSeconds = metrics.addHistogram('sagitta_embedding_call_seconds');
  }

  /**
   * The vectors of the texts, row-major [texts.length, dimension]; the caller owns them. Throws TextError,
   * `embedding_not_configured`, `embedding_failed`, `embedding_unavailable`, `overloaded` and the signal's reason.
   */
  async embed(
    texts: readonly string[],
    { source, dimension }: { readonly source: EmbeddingSource; readonly dimension: number },
    signal: AbortSignal,
  ): Promise<Float32Array> {
    const vectors =
      source.endpoint === BUILTIN
        ? await this.builtin.embed(texts, source.model, signal)
        : await this.#callEndpoint(texts, { source, dimension }, signal);
    this.#countTexts(texts.length);
    return vectors;
  }

  /** Ends the threads of the built-in model. */
  async close(): Promise<void> {
    await this.builtin.close();
  }

  async #callEndpoint(
    texts: readonly string[],
    { source, dimension }: { readonly source: EmbeddingSource; readonly dimension: number },
    signal: AbortSignal,
  ): Promise<Float32Array> {
    const target = { endpoint: this.#endpointOf(source), source, dimension };
    const { embeddingBatchTexts: batchTextsMax } = this.#options;
    const vectors = new Float32Array(texts.length * dimension);
    const starts = Array.from(
      { length: Math.ceil(texts.length / batchTextsMax) },
      (_, i) => i * batchTextsMax,
    );
    // The first failure aborts the other calls.
    const controller = new AbortController();
    const either = anySignal([signal, controller.signal]);
    try {
      await forEachAtOnce(starts, CALLS_MAX, async (start) => {
        const batch = texts.slice(start, start + batchTextsMax);
        vectors.set(await this.#embedBatch(batch, target, either), start * dimension);
      });
    } catch (error) {
      controller.abort(error);
      throw error;
    } finally {
      // A stream embeds often with one signal, which lets go of the combined one.
      controller.abort();
    }
    return vectors;
  }

  #endpointOf({ endpoint: name }: EmbeddingSource): EmbeddingEndpoint {
    const endpoint = this.#options.embedding.find((one) => one.name === name);
    if (endpoint !== undefined) return endpoint;
    throw new SagittaError(
      'embedding_not_configured',
      `The collection's embedding endpoint "${name}" is not configured on this server. Add it to SAGITTA_EMBEDDING_ENDPOINTS, or send vectors.`,
    );
  }

  async #embedBatch(
    texts: readonly string[],
    target: Target,
    signal: AbortSignal,
  ): Promise<Float32Array> {
    const { embeddingAttempts: attemptsMax } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(texts, target, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof TransientFailure)) throw error;
        const waitMs = Math.max(BACKOFF_MS_BASE * 2 ** (attempt - 1), error.retryAfterMs);
        if (attempt >= attemptsMax || waitMs > RETRY_AFTER_MS_MAX) {
          throw unavailable(target, `${error.message} (attempt ${attempt})`, waitMs);
        }
        await sleep(waitMs, undefined, { signal });
      }
    }
  }

  /** Makes one call. Throws `TransientFailure`, `embedding_failed`, and `embedding_unavailable` without a call. */
  async #attempt(
    texts: readonly string[],
    target: Target,
    signal: AbortSignal,
  ): Promise<Float32Array> {
    const admission = this.#breakers.get(target.endpoint.name)!.admit();
    if (admission.kind === 'rejected') {
      this.#countCalls(1, { outcome: 'rejected' });
      throw unavailable(target, 'it has failed repeatedly', admission.retryAfterMs);
    }
    const startedAtMs = performance.now();
    try {
      const reply = await this.#post(texts, target, signal);
      admission.settle('success');
      const vectors = readReply(reply, texts.length, target);
      this.#countCalls(1, { outcome: 'success' });
      return vectors;
    } catch (error) {
      this.#countCalls(1, { outcome: 'failure' });
      // An abort says nothing about the endpoint, and a refusal concerns only the request.
      const isFailure = error instanceof TransientFailure && !signal.aborted;
      admission.settle(isFailure ? 'failure' : signal.aborted ? 'unknown' : 'success');
      throw error;
    } finally {
      this.#observeSeconds((performance.now() - startedAtMs) / 1_000);
    }
  }

  /** The JSON of a reply with status 200. */
  async #post(texts: readonly string[], target: Target, signal: AbortSignal): Promise<unknown> {
    const { endpoint, source, dimension } = target;
    const timeout = AbortSignal.timeout(this.#options.embeddingTimeoutMs);
    try {
      const response = await fetch(endpoint.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(endpoint.key === null ? {} : { authorization: `Bearer ${endpoint.key}` }),
        },
        body: JSON.stringify({
          model: source.model,
          input: texts,
          encoding_format: 'float',
          ...(source.sendsDimension ? { dimensions: dimension } : {}),
        }),
        // A redirect could lead anywhere.
        redirect: 'error',
        signal: anySignal([signal, timeout]),
      });
      const bytesMax = REPLY_BYTES_BASE + texts.length * dimension * NUMBER_BYTES_MAX;
      const text = await readText(response, bytesMax);
      if (response.ok) return parseReply(text, target);
      if (response.status === 429 || response.status >= 500) {
        throw new TransientFailure(`it replied ${response.status}`, retryAfterMsOf(response));
      }
      throw failed(target, `it replied ${response.status}`);
    } catch (error) {
      if (error instanceof SagittaError || error instanceof TransientFailure) throw error;
      signal.throwIfAborted();
      if (timeout.aborted) {
        throw new TransientFailure(
          `it did not reply within ${this.#options.embeddingTimeoutMs} ms`,
        );
      }
      // The message of undici contains addresses, which clients must not see.
      throw new TransientFailure('it cannot be reached, or the connection was lost');
    }
  }
}

/** The first `bytesMax` bytes. The rest of a longer reply, which is then invalid JSON, is not read. */
async function readText(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    byteCount += chunk.byteLength;
    if (byteCount > bytesMax) break;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax).toString();
}

function retryAfterMsOf({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after'));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0;
}

function parseReply(text: string, target: Target): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw failed(target, 'its reply is not JSON, or too long');
  }
}

interface EmbeddingItem {
  readonly index?: unknown;
  readonly embedding?: unknown;
}

/** The vectors in the order of the texts, row-major. Items may name their index. Throws `embedding_failed`. */
function readReply(reply: unknown, count: number, target: Target): Float32Array {
  const { dimension } = target;
  const data = (reply as { readonly data?: unknown } | null)?.data;
  if (!Array.isArray(data)) throw failed(target, 'its reply has no array "data"');
  if (data.length !== count) {
    throw failed(target, `it returned ${data.length} vectors for ${count} texts`);
  }
  const vectors = new Float32Array(count * dimension);
  const seen = new Set<number>();
  for (const [place, item] of (data as readonly (EmbeddingItem | null)[]).entries()) {
    const index = item?.index ?? place;
    const isIndex = typeof index === 'number' && Number.isInteger(index) && index >= 0;
    if (!isIndex || index >= count || seen.has(index)) {
      throw failed(target, `its vector ${place} has the index ${JSON.stringify(index)}`);
    }
    seen.add(index);
    const vector = readVector(item?.embedding, Number.POSITIVE_INFINITY);
    if (!(vector instanceof Float32Array)) {
      throw failed(target, `its vector ${index} is not valid: ${vector.detail}`);
    }
    if (vector.length !== dimension) {
      throw failed(
        target,
        `its vectors have ${vector.length} elements; the collection's dimension is ${dimension}`,
      );
    }
    vectors.set(vector, index * dimension);
  }
  return vectors;
}

function failed({ endpoint }: Target, why: string): SagittaError {
  return new SagittaError(
    'embedding_failed',
    `The embedding endpoint "${endpoint.name}" cannot be used: ${why}.`,
  );
}

function unavailable({ endpoint }: Target, why: string, retryAfterMs: number): SagittaError {
  return new SagittaError(
    'embedding_unavailable',
    `The embedding endpoint "${endpoint.name}" is unavailable: ${why}. Retry later, or send vectors.`,
    { retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMs / 1_000)) },
  );
}
