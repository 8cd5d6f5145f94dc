// Files that several machines share: segments, snapshots and the archive of logs. A name always stands for the same
// bytes, so it does no harm to write it twice. Nothing depends on conditions that a service may ignore, such as
// If-None-Match; records of logs decide which files count.

import { assert } from '../../common/errors.js';

/** Bytes from `from` up to, not including, `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export interface Blobs {
  /** Writes the parts one after another. Resolves when they are durable; until then readers find nothing or everything. */
  put(name: string, parts: readonly Uint8Array[], signal?: AbortSignal): Promise<void>;
  /**
   * All bytes, or those of a range; undefined for a blob that does not exist. Rejects when the blob ends before the
   * range.
   */
  get(name: string, range?: ByteRange, signal?: AbortSignal): Promise<Uint8Array | undefined>;
  /** The names that start with a prefix, in the order of their characters. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<string>;
  /** Does nothing for a blob that does not exist. */
  remove(name: string, signal?: AbortSignal): Promise<void>;
}

/** Plain characters and slashes, so that a name means the same in a folder and in a URL. */
const NAME_PATTERN = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$/;

export function isBlobName(name: string): boolean {
  return NAME_PATTERN.test(name);
}

export function assertBlobName(name: string): void {
  assert(isBlobName(name), `the name of a blob: ${name}`);
}

/** Throws unless the range was read to its end. */
export function requireLength(name: string, bytes: Uint8Array, range: ByteRange | undefined): void {
  if (range === undefined || bytes.length === range.to - range.from) return;
  throw new Error(
    `Expected ${range.to - range.from} bytes of ${name} from ${range.from} on; found ${bytes.length}.`,
  );
}
