// Shared files that others may write, too. A node uses only what a node has written: each file begins with a seal, the
// SHA-256 of the rest and an HMAC-SHA-256 over the name and that digest, with a key of the nodes; or else a sealed file
// names it with its digest. Whoever can write there can remove files and read them, but cannot change, move or add any
// that a node would use. To put back a file that was removed is possible: its name stands for the same bytes.

import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import { DIGEST_BYTES } from '../../platform/blocks.js';
import { type NodeKeys, TAG_BYTES } from '../../platform/node-keys.js';
import { type Blobs, isBlobName } from './blobs.js';
import {
  type BlobDigest,
  getPinned,
  openPinned,
  type PinnedBlocks,
  putPinned,
} from './pinned-blobs.js';

/** By which of the secrets of this node a file is sealed: the one that signs, or one that is being replaced. */
export type Seal = 'current' | 'earlier';

const SEAL_BYTES = DIGEST_BYTES + TAG_BYTES;

export class SealedBlobs {
  readonly #blobs: Blobs;
  readonly #keys: NodeKeys;

  constructor(blobs: Blobs, keys: NodeKeys) {
    this.#blobs = blobs;
    this.#keys = keys;
  }

  /** Whether the secret is being changed, so that files may have to be sealed again. */
  get isChangingSecret(): boolean {
    return this.#keys.isChanging;
  }

  async put(name: string, parts: readonly Uint8Array[]): Promise<void> {
    const sha256 = createHash('sha256');
    for (const part of parts) sha256.update(part);
    const digest = sha256.digest();
    await this.#blobs.put(name, [digest, this.#sign(name, digest), ...parts]);
  }

  /** Undefined for a file that does not exist. Throws `data_corrupt` for one that no node has written. */
  async get(name: string): Promise<Uint8Array | undefined> {
    const sealed = await this.#blobs.get(name);
    if (sealed === undefined) return undefined;
    if (this.#sealIn(name, sealed.subarray(0, SEAL_BYTES)) === null) {
      throw notFromNode(
        name,
        `${sealed.length} bytes that are not signed with SAGITTA_CLUSTER_SECRET under this name: the file was changed or written by something else than a node of this cluster, or with a secret that is no longer set`,
      );
    }
    const bytes = sealed.subarray(SEAL_BYTES);
    if (hash('sha256', bytes, 'buffer').equals(sealed.subarray(0, DIGEST_BYTES))) return bytes;
    throw notFromNode(name, `its signature with ${bytes.length} other bytes: the file was changed`);
  }

  /**
   * Writes a file that a sealed one, or a record of a log, is going to name with its digest. `digests` are those of its
   * blocks, if they are known.
   */
  async putPinned(name: string, parts: readonly Uint8Array[], digests?: Uint8Array): Promise<void> {
    await putPinned(this.#blobs, name, parts, digests);
  }

  /** Reads a file that a sealed one names. Throws `data_corrupt` unless it exists and has these bytes. */
  getPinned(name: string, expected: BlobDigest): Promise<Uint8Array> {
    return getPinned(this.#blobs, name, expected);
  }

  /** Opens a file that a sealed one names for reading it block by block. Throws `data_corrupt`. */
  openPinned(name: string, expected: BlobDigest): Promise<PinnedBlocks> {
    return openPinned(this.#blobs, name, expected);
  }

  /**
   * Whether a node has written a file under this name, which shows without reading all of it; null if none has, or the
   * file does not exist.
   */
  async sealOf(name: string): Promise<Seal | null> {
    let seal: Uint8Array | undefined;
    try {
      seal = await this.#blobs.get(name, { from: 0, to: SEAL_BYTES });
    } catch (error) {
      // Reading a range fails for a file that is shorter.
      seal = await this.#blobs.get(name);
      if (seal !== undefined && seal.length >= SEAL_BYTES) throw error;
    }
    return seal === undefined ? null : this.#sealIn(name, seal);
  }

  /** Seals a file by the current secret, unless it is or does not exist. Throws `data_corrupt`. */
  async reseal(name: string): Promise<void> {
    if ((await this.sealOf(name)) === 'current') return;
    const bytes = await this.get(name);
    if (bytes !== undefined) await this.put(name, [bytes]);
  }

  /** See `Blobs`. Anyone may have added or removed names; those that no node would write are left out. */
  async *list(prefix: string): AsyncIterable<string> {
    for await (const name of this.#blobs.list(prefix)) if (isBlobName(name)) yield name;
  }

  async remove(name: string): Promise<void> {
    await this.#blobs.remove(name);
  }

  #sign(name: string, digest: Uint8Array): Buffer {
    // Names contain no line feed, and the digest has a fixed length.
    return this.#keys.sign('files', `${name}\n`, digest);
  }

  #sealIn(name: string, seal: Uint8Array): Seal | null {
    const digest = seal.subarray(0, DIGEST_BYTES);
    const tag = seal.subarray(DIGEST_BYTES);
    if (!this.#keys.verify('files', tag, `${name}\n`, digest)) return null;
    return timingSafeEqual(this.#sign(name, digest), tag) ? 'current' : 'earlier';
  }
}

function notFromNode(name: string, found: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `Expected the shared file ${name} as a node of this cluster has written it; found ${found}. It is not used. See docs/cluster.md.`,
  );
}
