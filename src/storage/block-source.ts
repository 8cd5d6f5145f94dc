// Where the blocks of partial blobs come from: a module that the store does not know, which is loaded by its URL in the
// thread that needs it.

import { setTimeout as sleep } from 'node:timers/promises';

/** A source may be used by several threads, each of which opens its own. */
export interface BlockSource {
  /**
   * Returns the verified bytes of a block of the blob that `source` names; rejects if they cannot be had now. It must need
   * neither the main thread nor what it may block, such as the pool of libuv when that reads mapped files.
   */
  read(source: string, block: number): Promise<Uint8Array>;
}

export interface BlockSourceModule {
  /** The URL of a module that exports `openBlockSource(data)`, which returns a source or the promise of one. */
  readonly module: string;
  /** Passed to `openBlockSource`; it can be cloned. */
  readonly data: unknown;
}

export interface BlockDeadlines {
  /** For so long a failing read is repeated. */
  readonly retryMsMax: number;
  /** A read without an answer for so long has failed. */
  readonly answerMsMax: number;
}

/** A block that a source has returned, and how long that took. */
export interface FetchedBlock {
  readonly byteLength: number;
  readonly seconds: number;
}

export interface FetchOptions {
  readonly deadlines: BlockDeadlines;
  readonly onFetched: (fetched: FetchedBlock) => void;
}

/** A restart of the shared files, or of the network, takes less. A slow connection returns a block in a second. */
export const BLOCK_DEADLINES: BlockDeadlines = { retryMsMax: 20_000, answerMsMax: 10_000 };
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 2_000;

export async function openBlockSource({ module, data }: BlockSourceModule): Promise<BlockSource> {
  const exported = (await import(module)) as {
    openBlockSource(data: unknown): BlockSource | Promise<BlockSource>;
  };
  return exported.openBlockSource(data);
}

/** Reads one block, once, and checks its length. */
export async function readOnce(
  source: BlockSource,
  { name, block, byteLength }: { name: string; block: number; byteLength: number },
  { deadlines, onFetched }: FetchOptions,
): Promise<Uint8Array> {
  const startedAtMs = performance.now();
  const bytes = await within(source.read(name, block), deadlines.answerMsMax);
  if (bytes.byteLength !== byteLength) {
    throw new Error(`block ${block} has ${bytes.byteLength} bytes, expected ${byteLength}`);
  }
  onFetched({ byteLength, seconds: (performance.now() - startedAtMs) / 1000 });
  return bytes;
}

/** Calls `attempt` until it succeeds. Throws its last error once the time for retries, from `sinceMs` on, has passed. */
export async function retry<Result>(
  attempt: () => Promise<Result>,
  { retryMsMax }: BlockDeadlines,
  sinceMs = performance.now(),
): Promise<Result> {
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() + pauseMs > sinceMs + retryMsMax) throw error;
      await sleep(pauseMs);
    }
  }
}

async function within<Result>(work: Promise<Result>, msMax: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${msMax} ms`)), msMax);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
