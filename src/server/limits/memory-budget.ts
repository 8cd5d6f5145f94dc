// A limit on the bytes that are reserved at the same time, with a share for each principal. Only counts: callers decide
// when to check and which error to throw.

import { EVERYBODY } from '../../common/access.js';

/** The share of one principal, which always leaves room for others. */
const PRINCIPAL_SHARE = 1 / 2;

/** Bodies and replies of at most this size are admitted under memory pressure too. */
const SMALL_BYTES = 64 * 1024;

/** The state of the memory of the process. */
export interface Pressure {
  readonly isPressed: boolean;
}

export const NO_PRESSURE: Pressure = { isPressed: false };

export class MemoryBudget {
  readonly bytesMax: number;
  readonly shareBytesMax: number;
  readonly #pressure: Pressure;
  #bytesReserved = 0;
  /** Reserved bytes of principals with a share. */
  readonly #bytesOf = new Map<string, number>();

  /** Under pressure, admits small bodies or replies and one large one at a time. */
  constructor(bytesMax: number, pressure: Pressure) {
    this.bytesMax = bytesMax;
    this.#pressure = pressure;
    this.shareBytesMax = Math.floor(bytesMax * PRINCIPAL_SHARE);
  }

  /** The total over all principals. */
  get bytesReserved(): number {
    return this.#bytesReserved;
  }

  /** Whether the process is near the limit of its memory. */
  get isPressed(): boolean {
    return this.#pressure.isPressed;
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
   * Whether `byteCount` more bytes fit. `own` is what the same body or reply has already reserved. If nothing else is
   * reserved there is always room, so that one body or reply can be completed.
   */
  hasRoom(byteCount: number, own: number, headroomBytes = 0): boolean {
    if (this.#bytesReserved <= own) return true;
    if (this.#bytesReserved + byteCount > this.bytesMax + headroomBytes) return false;
    // A large one that was admitted may grow: refusing it now would waste the work on it.
    const isNewlyLarge = own <= SMALL_BYTES && own + byteCount > SMALL_BYTES && headroomBytes === 0;
    return !isNewlyLarge || !this.#pressure.isPressed;
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

/** Null for the only principal of a service without credentials, which needs no share. */
export function shareHolder(principalId: string): string | null {
  return principalId === EVERYBODY.id ? null : principalId;
}
