// Limits the bytes of replies that clients have not read yet, over all connections. A reply counts
// while its text is being made and until it has been sent, or cannot be any more. Replies that do not
// fit are refused. Static bodies, shared by all their readers, are not counted.

import { EVERYBODY } from '../../common/access.js';
import { overloadedError, SagittaError } from '../../common/errors.js';
import { MemoryBudget, shareHolder } from './memory-budget.js';

/** A reply not much longer than the error in its place is always sent. */
const SMALL_BYTES = 4_096;

/** Beyond the limit, for health checks and metrics: operators need them most under load. */
export const OPERATIONAL_HEADROOM_BYTES = 64_000_000;

export class ReplyAdmission {
  readonly #budget: MemoryBudget;

  constructor(options: { bytesMax: number }) {
    this.#budget = new MemoryBudget(options.bytesMax);
  }

  /** The total of all reservations, for metrics. */
  get bytesInFlight(): number {
    return this.#budget.bytesReserved;
  }

  /** An empty reservation for one reply. */
  open(): ReplyReservation {
    return new ReplyReservation(this);
  }

  /**
   * Throws `overloaded` if `byteCount` more bytes do not fit; `own`: what the same reply has reserved
   * already. The only unread reply of a principal always fits.
   */
  check(principalId: string, byteCount: number, own: number, headroomBytes = 0): void {
    const { bytesReserved, bytesMax, shareBytesMax } = this.#budget;
    if (!this.#budget.hasRoom(byteCount, own, headroomBytes)) {
      throw overloadedError(
        `Too many replies are waiting to be read (${bytesReserved} bytes; this one would exceed the limit of ${bytesMax}).`,
      );
    }
    const holder = shareHolder(principalId);
    if (!this.#budget.hasShare(holder, byteCount, own, headroomBytes)) {
      throw overloadedError(
        `Too many replies to this credential are waiting to be read (${this.#budget.reservedBy(holder)} bytes; this one would exceed its limit of ${shareBytesMax}). Read them first.`,
      );
    }
  }

  /** Counts the bytes whether or not there is room; a negative count releases them. */
  add(principalId: string, byteCount: number): void {
    this.#budget.add(shareHolder(principalId), byteCount);
  }
}

/** The memory reserved for one reply, until it is released. */
export class ReplyReservation {
  readonly #admission: ReplyAdmission;
  #principalId = EVERYBODY.id;
  #byteCount = 0;
  #isReleased = false;

  constructor(admission: ReplyAdmission) {
    this.#admission = admission;
  }

  /**
   * Sets the reservation for a reply that can still be refused. Throws `overloaded`, or
   * `deadline_exceeded` when the client has disconnected.
   */
  reserve(principalId: string, byteCount: number, headroomBytes = 0): void {
    if (this.#isReleased) throw new SagittaError('deadline_exceeded', 'The client disconnected.');
    if (byteCount > SMALL_BYTES) {
      const more = byteCount - this.#byteCount;
      this.#admission.check(principalId, more, this.#byteCount, headroomBytes);
    }
    this.reserveUnchecked(principalId, byteCount);
  }

  /** Sets the reservation for a reply that must be sent: an error, or the result of a write. */
  reserveUnchecked(principalId: string, byteCount: number): void {
    if (this.#isReleased) return;
    if (this.#byteCount === 0) this.#principalId = principalId;
    this.#admission.add(this.#principalId, byteCount - this.#byteCount);
    this.#byteCount = byteCount;
  }

  /** May be called any number of times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#admission.add(this.#principalId, -this.#byteCount);
  }
}
