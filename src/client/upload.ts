// Streams on their way out: an iterable of bytes as a body that fetch takes. Guarantees that no
// chunk is asked for before it can be sent, and that the source is ended with the request.

import type { IdleTimer } from './idle-timer.js';

/** A body that is sent as it comes. */
export type ByteSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
/** A function opens the same bytes anew, which makes it possible to send them again. */
export type Resendable<Source> = Source | (() => Source);

export interface Upload {
  /** What fetch is given besides method, URL and headers. */
  readonly init: { readonly body: ReadableStream<Uint8Array> | Blob; readonly duplex?: 'half' };
  /** What the source threw, if it did. */
  readonly failure: { readonly error: unknown } | undefined;
  /** Whether the source came to its end. */
  readonly isComplete: boolean;
  /** Ends the source, if it has not ended by itself. What was sent stays without an end. */
  stop(): void;
}

/** As it comes: memory does not grow. The timer stands still while the source is asked. */
export function streamUpload(source: ByteSource, timer: IdleTimer): Upload {
  const chunks = toAsyncIterator(source);
  let failure: Upload['failure'];
  let isComplete = false;
  let isStopped = false;
  const stop = (): void => {
    if (isComplete || isStopped || failure !== undefined) return;
    isStopped = true;
    // Nobody waits: a source that hangs in its clean-up must not hang the request.
    chunks.return?.()?.then(undefined, () => {});
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        timer.hold();
        try {
          let next = await chunks.next();
          // A stream takes no empty chunk for an answer.
          while (!next.done && next.value.byteLength === 0) next = await chunks.next();
          if (isStopped) throw new Error('the request has ended');
          if (next.done) {
            isComplete = true;
            controller.close();
          } else {
            controller.enqueue(next.value);
          }
        } catch (error) {
          if (!isStopped) failure = { error };
          controller.error(error);
        } finally {
          timer.release();
        }
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
  return {
    init: { body, duplex: 'half' },
    get failure() {
      return failure;
    },
    get isComplete() {
      return isComplete;
    },
    stop,
  };
}

/** Collected first, for browsers that cannot send a stream; they may keep it on disk. */
export async function blobUpload(
  source: ByteSource,
  signal: AbortSignal | undefined,
): Promise<Upload> {
  const parts: Blob[] = [];
  let failure: Upload['failure'];
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted();
      // A blob copies: a source may use its buffer again.
      parts.push(new Blob([chunk as Uint8Array<ArrayBuffer>]));
    }
  } catch (error) {
    failure = { error };
  }
  return { init: { body: new Blob(parts) }, failure, isComplete: true, stop() {} };
}

/**
 * Browsers either cannot send streams or can over HTTP/2 alone, and do not say beforehand; other
 * runtimes can.
 */
export function canStreamUploads(): boolean {
  return !('document' in globalThis) && !('WorkerGlobalScope' in globalThis);
}

export function openSource<Source>(source: Resendable<Source>): Source {
  return typeof source === 'function' ? (source as () => Source)() : source;
}

function toAsyncIterator(source: ByteSource): AsyncIterator<Uint8Array> {
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]();
  const chunks = source[Symbol.iterator]();
  return {
    next: async () => chunks.next(),
    return: async () => chunks.return?.() ?? { done: true, value: undefined },
  };
}
