// Signatures between the nodes of a cluster. All nodes are given the same secret, which is never sent or stored.
// Signing keys are derived from it by HKDF-SHA-256 (RFC 5869), one for each purpose, so that a signature for one
// purpose is useless for another.

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/**
 * `requests` between nodes, `logs` for records, `files` for shared files, `members` for announcements, `cursors` for
 * those of clients.
 */
export type KeyPurpose = 'requests' | 'logs' | 'files' | 'members' | 'cursors';

const KEY_BYTES = 32;
/** Length of a signature. */
export const TAG_BYTES = 32;

export class NodeKeys {
  readonly #secrets: readonly string[];
  readonly cluster: string;
  readonly #derived = new Map<KeyPurpose, readonly Buffer[]>();

  /**
   * The first secret signs; signatures by any of them are accepted, so that a secret can be rotated. Without secrets,
   * the cluster runs on one machine, where all processes are trusted. @param cluster its name.
   */
  constructor(secrets: readonly string[], cluster: string) {
    this.#secrets = secrets.length === 0 ? [''] : secrets;
    this.cluster = cluster;
  }

  /** Whether signatures by more than one secret are accepted. */
  get isChanging(): boolean {
    return this.#secrets.length > 1;
  }

  /** The HMAC-SHA-256 of all parts in order. The caller must ensure that the parts are unambiguous. */
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
