// How many bytes of replies the service holds for clients that have not taken them yet, over all
// connections. A reply is counted while its text is made and until it has left, or cannot any more;
// what does not fit is refused. Bodies that all readers share are not counted: they are held once.

import { EVERYBODY } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import { MemoryBudget, shareHolder } from './memory-budget.js';

/** A reply that is not much longer than the problem in its place is sent whatever else waits. */
const SMALL_BYTES = 4_096;

/** Beyond the bound, for replies that tell how the service does: those who run it need them then. */
export const OPERATIONAL_HEADROOM_BYTES = 64_000_000;

/** Clients take their replies within about that time. */
const RETRY_AFTER_SECONDS = 1;

export class ReplyAdmission {
  readonly #held: MemoryBudget;

  constructor(options: { bytesMax: number }) {
    this.#held = new MemoryBudget(options.bytesMax);
  }

  /** For metrics. */
  get bytesInFlight(): number {
    return this.#held.bytesReserved;
  }

  /** For one reply, which holds nothing yet. */
  open(): ReplyReservation {
    return new ReplyReservation(this);
  }

  /**
   * Whether so many bytes more have room; `held` is what the same reply has already. A reply is never
   * too long for one who waits for no other. Throws `overloaded`.
   */
  check(principalId: string, byteCount: number, held: number, spareBytes = 0): void {
    if (!this.#held.hasRoom(byteCount, held, spareBytes)) {
      throw overloaded(
        `Replies of ${this.#held.bytesReserved} bytes wait for their clients; with this one it would be more than ${this.#held.bytesMax}.`,
      );
    }
    const owner = shareHolder(principalId);
    if (!this.#held.hasShare(owner, byteCount, held, spareBytes)) {
      throw overloaded(
        `Replies of ${this.#held.reservedBy(owner)} bytes wait for this credential; with this one it would be more than its share of ${this.#held.shareBytesMax}. Take them first.`,
      );
    }
  }

  /** Counts what is held, whether or not it has room. */
  add(principalId: string, byteCount: number): void {
    this.#held.add(shareHolder(principalId), byteCount);
  }
}

/** What one reply holds, until it is released. */
export class ReplyReservation {
  readonly #admission: ReplyAdmission;
  #principalId = EVERYBODY.id;
  #byteCount = 0;
  #isReleased = false;

  constructor(admission: ReplyAdmission) {
    this.#admission = admission;
  }

  /**
   * For a reply that may still be refused, in the making or when it is made. Throws `overloaded`, or
   * `deadline_exceeded` when nobody waits for it any more.
   */
  reserve(principalId: string, byteCount: number, spareBytes = 0): void {
    if (this.#isReleased) throw new SagittaError('deadline_exceeded', 'The client went away.');
    if (byteCount > SMALL_BYTES) {
      const more = byteCount - this.#byteCount;
      this.#admission.check(principalId, more, this.#byteCount, spareBytes);
    }
    this.reserveUnchecked(principalId, byteCount);
  }

  /** For a reply that is sent in any case: a problem, or what a write has done. */
  reserveUnchecked(principalId: string, byteCount: number): void {
    if (this.#isReleased) return;
    if (this.#byteCount === 0) this.#principalId = principalId;
    this.#admission.add(this.#principalId, byteCount - this.#byteCount);
    this.#byteCount = byteCount;
  }

  /** Any number of times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#admission.add(this.#principalId, -this.#byteCount);
  }
}

/** What a body adds to what is held, about: its bytes are counted once, when it is sent. */
export function unsharedLength(body: string | object): number {
  return typeof body === 'string' ? body.length : 0;
}

function overloaded(message: string): SagittaError {
  return new SagittaError('overloaded', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}
