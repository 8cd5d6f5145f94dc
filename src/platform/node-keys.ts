// The secret that every node of a cluster is given, and that no node ever sends or stores. Nodes sign with keys that are
// derived from it by HKDF-SHA-256 (RFC 5869), one for each purpose, so that nothing signed for one is of use for another.

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/** `requests`: of one node to another. `logs`: records. `members`: announcements. `cursors`: what clients continue with. */
export type KeyPurpose = 'requests' | 'logs' | 'members' | 'cursors';

const KEY_BYTES = 32;
/** Of a signature. */
export const TAG_BYTES = 32;

export class NodeKeys {
  readonly #secrets: readonly string[];
  readonly cluster: string;
  readonly #derived = new Map<KeyPurpose, readonly Buffer[]>();

  /**
   * `secrets`: the first one signs, and what any of them has signed is accepted, so that a secret can be changed. None
   * stands for a cluster on one machine, all of whose processes are trusted. `cluster`: its name.
   */
  constructor(secrets: readonly string[], cluster: string) {
    this.#secrets = secrets.length === 0 ? [''] : secrets;
    this.cluster = cluster;
  }

  /** The HMAC-SHA-256 of all parts in order; the caller sees to it that they can be read in one way only. */
  sign(purpose: KeyPurpose, ...parts: readonly (string | Uint8Array)[]): Buffer {
    return tagOf(this.#keysFor(purpose)[0]!, parts);
  }

  verify(purpose: KeyPurpose, tag: Uint8Array, ...parts: readonly (string | Uint8Array)[]) {
    if (tag.length !== TAG_BYTES) return false;
    return this.#keysFor(purpose).some((key) => timingSafeEqual(tagOf(key, parts), tag));
  }

  #keysFor(purpose: KeyPurpose): readonly Buffer[] {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const info = `sagitta ${purpose}`;
    const derived = this.#secrets.map((secret) =>
      Buffer.from(hkdfSync('sha256', secret, this.cluster, info, KEY_BYTES)),
    );
    this.#derived.set(purpose, derived);
    return derived;
  }
}

function tagOf(key: Buffer, parts: readonly (string | Uint8Array)[]): Buffer {
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  return mac.digest();
}
