// Limits the bytes of replies that clients have not read yet, and of the results that they are made from, over all
// connections. A reply counts from the moment its text is made until it has been sent or can no longer be sent. Replies
// that do not fit are refused. Static bodies, which all readers share, do not count.

import { EVERYBODY } from '../../common/access.js';
import { overloadedError, SagittaError } from '../../common/errors.js';
import { MemoryBudget, NO_PRESSURE, type Pressure, shareHolder } from './memory-budget.js';

/** A reply that is not much longer than an error is always sent. */
const SMALL_BYTES = 4_096;

/** The share of streamed replies, which last for minutes and must leave room for short ones. */
const STREAMS_SHARE = 3 / 4;

/** Beyond the limit, for health checks and metrics, which operators need most under load. */
export const OPERATIONAL_HEADROOM_BYTES = 64_000_000;

export class ReplyAdmission {
  readonly #budget: MemoryBudget;

  constructor({ bytesMax, pressure = NO_PRESSURE }: { bytesMax: number; pressure?: Pressure }) {
    this.#budget = new MemoryBudget(bytesMax, pressure);
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
   * Throws `overloaded` if `byteCount` more bytes do not fit. `own` is what the same reply has already reserved.
   * The only unread reply of a principal always fits.
   */
  check(principalId: string, byteCount: number, own: number, headroomBytes = 0): void {
    const { bytesReserved, bytesMax, shareBytesMax } = this.#budget;
    if (!this.#budget.hasRoom(byteCount, own, headroomBytes)) {
      throw overloadedError(
        this.#budget.isPressed
          ? `The memory of the service is almost exhausted, and other replies are in progress (${bytesReserved} bytes).`
          : `Too many replies are in progress or waiting to be read (${bytesReserved} bytes; this one would exceed the limit of ${bytesMax}).`,
      );
    }
    const holder = shareHolder(principalId);
    if (!this.#budget.hasShare(holder, byteCount, own, Math.max(0, headroomBytes))) {
      throw overloadedError(
        `Too many replies to this credential are in progress or waiting to be read (${this.#budget.reservedBy(holder)} bytes; this one would exceed its limit of ${shareBytesMax}). Read them first.`,
      );
    }
  }

  /** The headroom of replies that are streamed, which is negative. */
  get streamHeadroomBytes(): number {
    return Math.floor(-this.#budget.bytesMax * (1 - STREAMS_SHARE));
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
  /** The bytes of the reply and of the results that it is made from. */
  #byteCount = 0;
  #workBytes = 0;
  #isReleased = false;

  constructor(admission: ReplyAdmission) {
    this.#admission = admission;
  }

  /**
   * Sets the reservation for a reply that can still be refused. Throws `overloaded`, or
   * `deadline_exceeded` when the client has disconnected.
   */
  reserve(principalId: string, replyBytes: number, headroomBytes = 0): void {
    this.#check(principalId, this.#workBytes + replyBytes, headroomBytes);
    this.reserveUnchecked(principalId, replyBytes);
  }

  /** Sets the reservation for a reply that must be sent: an error, or the result of a write. */
  reserveUnchecked(principalId: string, replyBytes: number): void {
    this.#set(principalId, this.#workBytes + replyBytes);
  }

  /**
   * Reserves memory for the results that the reply will be made from, until `endWork` or until a streamed reply has
   * been sent. Throws like `reserve`.
   */
  reserveWork(principalId: string, workBytes: number, isStreamed: boolean): void {
    const byteCount = this.#byteCount - this.#workBytes + workBytes;
    this.#check(principalId, byteCount, isStreamed ? this.#admission.streamHeadroomBytes : 0);
    this.#set(principalId, byteCount);
    this.#workBytes = workBytes;
  }

  /** Called when the reply has been made: from now on only its text counts. */
  endWork(): void {
    this.#set(this.#principalId, this.#byteCount - this.#workBytes);
    this.#workBytes = 0;
  }

  #check(principalId: string, byteCount: number, headroomBytes: number): void {
    if (this.#isReleased) throw new SagittaError('deadline_exceeded', 'The client disconnected.');
    if (byteCount <= SMALL_BYTES) return;
    const more = byteCount - this.#byteCount;
    this.#admission.check(principalId, more, this.#byteCount, headroomBytes);
  }

  #set(principalId: string, byteCount: number): void {
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
