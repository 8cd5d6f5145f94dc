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

/** A failed read is repeated for so long: a restart of the shared files, or of the network, takes less. */
export const RETRY_MS_MAX = 20_000;
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 2_000;

export async function openBlockSource({ module, data }: BlockSourceModule): Promise<BlockSource> {
  const exported = (await import(module)) as {
    openBlockSource(data: unknown): BlockSource | Promise<BlockSource>;
  };
  return exported.openBlockSource(data);
}

/** Calls `attempt` until it succeeds. Throws its last error once `retryMsMax` has passed, even if an attempt hangs. */
export async function retry<Result>(
  attempt: () => Promise<Result>,
  retryMsMax: number,
): Promise<Result> {
  const deadlineMs = performance.now() + retryMsMax;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const leftMs = Math.max(1, deadlineMs - performance.now());
    try {
      return await within(attempt(), leftMs);
    } catch (error) {
      if (performance.now() + pauseMs > deadlineMs) throw error;
      await sleep(pauseMs);
    }
  }
}

/** Reads one block and checks its length. */
export async function readOnce(
  source: BlockSource,
  name: string,
  block: number,
  byteLength: number,
): Promise<Uint8Array> {
  const bytes = await source.read(name, block);
  if (bytes.byteLength === byteLength) return bytes;
  throw new Error(`block ${block} has ${bytes.byteLength} bytes, expected ${byteLength}`);
}

async function within<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${Math.round(ms)} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
