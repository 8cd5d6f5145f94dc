// Request bodies from an iterable of bytes, for fetch. A chunk is requested only when it can be sent,
// and the source is closed when the request ends.

import type { IdleTimer } from './idle-timer.js';
import { unexpected } from './values.js';

/** A streamed body. */
export type ByteSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
/** A function can reopen the same source, so that the request can be retried. */
export type Resendable<Source> = Source | (() => Source);

export interface Upload {
  /** The members of fetch's init other than method and headers. */
  readonly init: { readonly body: ReadableStream<Uint8Array> | Blob; readonly duplex?: 'half' };
  /** The error of the source, if it threw. */
  readonly failure: { readonly error: unknown } | undefined;
  /** Whether the source has been read completely. */
  readonly isComplete: boolean;
  /** Closes the source, if it has not ended; the body stays incomplete. */
  stop(): void;
}

/** A streamed upload with bounded memory. The timer is paused while the source is read. */
export function streamUpload(source: ByteSource, timer: IdleTimer): Upload {
  const chunks = toAsyncIterator(source);
  let failure: Upload['failure'];
  let isComplete = false;
  let isStopped = false;
  const stop = (): void => {
    if (isComplete || isStopped || failure !== undefined) return;
    isStopped = true;
    // Not awaited: a source that hangs in its clean-up must not block the request.
    chunks.return?.()?.then(undefined, () => {});
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        timer.pause();
        try {
          let next = await chunks.next();
          // Byte streams reject empty chunks.
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
          timer.resume();
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

/** An upload collected into a Blob, for browsers that cannot stream; they may keep it on disk. */
export async function blobUpload(
  source: ByteSource,
  signal: AbortSignal | undefined,
): Promise<Upload> {
  const parts: Blob[] = [];
  let failure: Upload['failure'];
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted();
      // A Blob copies the chunk, since the source may reuse its buffer.
      parts.push(new Blob([chunk as Uint8Array<ArrayBuffer>]));
    }
  } catch (error) {
    failure = { error };
  }
  return { init: { body: new Blob(parts) }, failure, isComplete: true, stop() {} };
}

/**
 * Whether the runtime can stream uploads. Browsers cannot, or only over HTTP/2, which is not known in
 * advance; other runtimes can.
 */
export function canStreamUploads(): boolean {
  return !('document' in globalThis) && !('WorkerGlobalScope' in globalThis);
}

/** The source itself, or a newly opened one. */
export function openResendable<Source>(source: Resendable<Source>): Source {
  return typeof source === 'function' ? (source as () => Source)() : source;
}

/** Returns the source. Throws SagittaClientError (`invalid_argument`) unless it is iterable. */
export function requireIterable<Source>(source: Source, expected: string): Source {
  const isObject = typeof source === 'object' && source !== null;
  if (isObject && (Symbol.asyncIterator in source || Symbol.iterator in source)) return source;
  throw unexpected(source, expected);
}

function toAsyncIterator(source: ByteSource): AsyncIterator<Uint8Array> {
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]();
  const chunks = source[Symbol.iterator]();
  return {
    next: async () => chunks.next(),
    return: async () => chunks.return?.() ?? { done: true, value: undefined },
  };
}
