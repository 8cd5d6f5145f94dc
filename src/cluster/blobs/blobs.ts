// Files that several machines share: segments, snapshots and the archive of logs. A name is written once: what is
// written again under it has the same bytes. Nothing depends on conditions that a service may ignore, such as
// If-None-Match; which files count is decided by records of logs.

import { assert } from '../../common/errors.js';

/** Bytes from `from` up to, not including, `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export interface Blobs {
  /** Resolves when all parts, one after another, are durable under the name. Until then readers find nothing, or all. */
  put(name: string, parts: readonly Uint8Array[], signal?: AbortSignal): Promise<void>;
  /**
   * All bytes, or those of a range; undefined when there is no such blob. Rejects when the blob ends before the
   * range does.
   */
  get(name: string, range?: ByteRange, signal?: AbortSignal): Promise<Uint8Array | undefined>;
  /** The names that start with a prefix, in the order of their characters. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<string>;
  /** Does nothing when there is no such blob. */
  remove(name: string, signal?: AbortSignal): Promise<void>;
}

/** Parts of plain characters, joined by slashes, so that a name means the same in a folder and in a URL. */
const NAME_PATTERN = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$/;

export function assertBlobName(name: string): void {
  assert(NAME_PATTERN.test(name), `the name of a blob: ${name}`);
}

/** Throws unless the bytes are as many as were asked for. */
export function requireLength(name: string, bytes: Uint8Array, range: ByteRange | undefined): void {
  if (range === undefined || bytes.length === range.to - range.from) return;
  throw new Error(
    `${name} has ${bytes.length} bytes from ${range.from} on, expected ${range.to - range.from}.`,
  );
}
