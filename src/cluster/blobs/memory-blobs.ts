// Blobs in memory, for tests and models.

import { assertBlobName, type Blobs, type ByteRange, requireLength } from './blobs.js';

export class MemoryBlobs implements Blobs {
  readonly #blobs = new Map<string, Uint8Array>();

  async put(name: string, parts: readonly Uint8Array[]): Promise<void> {
    assertBlobName(name);
    this.#blobs.set(name, Buffer.concat(parts));
  }

  async get(name: string, range?: ByteRange): Promise<Uint8Array | undefined> {
    assertBlobName(name);
    const bytes = this.#blobs.get(name)?.slice(range?.from, range?.to);
    if (bytes !== undefined) requireLength(name, bytes, range);
    return bytes;
  }

  async *list(prefix: string): AsyncIterable<string> {
    yield* [...this.#blobs.keys()].filter((name) => name.startsWith(prefix)).sort();
  }

  async remove(name: string): Promise<void> {
    assertBlobName(name);
    this.#blobs.delete(name);
  }
}
