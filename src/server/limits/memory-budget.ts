// A limit on the bytes that are reserved at once, with a share of it for each principal. Only counts:
// callers decide when to ask and which error to return.

import { EVERYBODY } from '../../common/access.js';

/** The share of one principal: half, so that there is always room for others beside it. */
const PRINCIPAL_SHARE = 1 / 2;

export class MemoryBudget {
  readonly bytesMax: number;
  readonly shareBytesMax: number;
  #bytesReserved = 0;
  /** By principal, of those that have a share and reservations. */
  readonly #bytesOf = new Map<string, number>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    this.shareBytesMax = Math.floor(bytesMax * PRINCIPAL_SHARE);
  }

  /** Of all principals together. */
  get bytesReserved(): number {
    return this.#bytesReserved;
  }

  /** The number of principals with reservations that count against a share. */
  get principalCount(): number {
    return this.#bytesOf.size;
  }

  /** Here and below, `principalId` is null for principals without a share of their own. */
  reservedBy(principalId: string | null): number {
    return principalId === null ? 0 : (this.#bytesOf.get(principalId) ?? 0);
  }

  /**
   * Whether `byteCount` more bytes fit. `own`: what the same body or reply has reserved already. If
   * nothing else is reserved, there is always room: one body or reply can be completed alone.
   */
  hasRoom(byteCount: number, own: number, headroomBytes = 0): boolean {
    return (
      this.#bytesReserved <= own || this.#bytesReserved + byteCount <= this.bytesMax + headroomBytes
    );
  }

  /** The same for the share of one principal. */
  hasShare(principalId: string | null, byteCount: number, own: number, headroomBytes = 0): boolean {
    const reserved = this.reservedBy(principalId);
    return reserved <= own || reserved + byteCount <= this.shareBytesMax + headroomBytes;
  }

  /** Counts the bytes whether or not there is room; a negative count releases them. */
  add(principalId: string | null, byteCount: number): void {
    this.#bytesReserved += byteCount;
    if (principalId === null) return;
    const reserved = this.reservedBy(principalId) + byteCount;
    if (reserved === 0) this.#bytesOf.delete(principalId);
    else this.#bytesOf.set(principalId, reserved);
  }
}

/** Null for the one principal of a service without credentials, which shares with nobody. */
export function shareHolder(principalId: string): string | null {
  return principalId === EVERYBODY.id ? null : principalId;
}
