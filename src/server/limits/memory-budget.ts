// A bound on bytes that are held at once, with a share of it for each principal. Only counts: when to
// ask, and what to say to whom has no room, is for those who hold them.

import { EVERYBODY } from '../../common/access.js';

/** Of all that may be held, for one principal: another one always finds room beside it. */
const PRINCIPAL_SHARE = 1 / 2;

export class MemoryBudget {
  readonly bytesMax: number;
  readonly shareBytesMax: number;
  #byteCount = 0;
  /** Of each principal that has a share and holds something of it. */
  readonly #bytesOf = new Map<string, number>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    this.shareBytesMax = Math.floor(bytesMax * PRINCIPAL_SHARE);
  }

  /** Of everybody. */
  get bytesReserved(): number {
    return this.#byteCount;
  }

  get principalCount(): number {
    return this.#bytesOf.size;
  }

  /** Here and below: `principalId` is null for who has no share, and so no bound of its own. */
  reservedBy(principalId: string | null): number {
    return principalId === null ? 0 : (this.#bytesOf.get(principalId) ?? 0);
  }

  /** Whether so many more fit beside what others hold; who holds all there is may go on. */
  hasRoom(byteCount: number, held: number, spareBytes = 0): boolean {
    return this.#byteCount <= held || this.#byteCount + byteCount <= this.bytesMax + spareBytes;
  }

  /** The same for the share of one principal. */
  hasShare(principalId: string | null, byteCount: number, held: number, spareBytes = 0): boolean {
    const own = this.reservedBy(principalId);
    return own <= held || own + byteCount <= this.shareBytesMax + spareBytes;
  }

  /** Negative to give back. */
  add(principalId: string | null, byteCount: number): void {
    this.#byteCount += byteCount;
    if (principalId === null) return;
    const own = this.reservedBy(principalId) + byteCount;
    if (own === 0) this.#bytesOf.delete(principalId);
    else this.#bytesOf.set(principalId, own);
  }
}

/** A service without credentials has one principal, which shares with nobody. */
export function shareHolder(principalId: string): string | null {
  return principalId === EVERYBODY.id ? null : principalId;
}
