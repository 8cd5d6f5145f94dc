// How many bytes of bodies the service holds at once, over all connections. Bytes count from when
// they arrive, whatever a head says of them, until nothing works on their body any more; what does
// not fit is refused at once. Knows neither requests nor who reads.

import { SagittaError } from '../../common/errors.js';
import { MemoryBudget } from './memory-budget.js';

/** Other bodies are worked off within about that time. */
const RETRY_AFTER_SECONDS = 1;

export class BodyAdmission {
  readonly #held: MemoryBudget;

  constructor(options: { bytesMax: number }) {
    this.#held = new MemoryBudget(options.bytesMax);
  }

  /** For metrics. */
  get bytesInFlight(): number {
    return this.#held.bytesReserved;
  }

  /** Those that hold something and are bounded by a share. */
  get principalCount(): number {
    return this.#held.principalCount;
  }

  /**
   * For a body that is announced: throws `overloaded` when what is held leaves no room at all.
   * `principalId`: whose share it takes from, null for one that has no share.
   */
  check(principalId: string | null): void {
    if (this.#held.bytesReserved >= this.#held.bytesMax) throw this.#full();
    if (this.#held.reservedBy(principalId) >= this.#held.shareBytesMax) throw this.#shareUsedUp();
  }

  /** A place that holds nothing yet. */
  open(principalId: string | null): BodyReservation {
    return new BodyReservation(this, principalId);
  }

  /**
   * `held`: what the same body has already. A body is never too large for a service, or a share,
   * that has no other: it can always be finished. Throws `overloaded`, and then takes nothing.
   */
  reserve(byteCount: number, held: number, principalId: string | null): void {
    if (!this.#held.hasRoom(byteCount, held)) throw this.#full();
    if (!this.#held.hasShare(principalId, byteCount, held)) throw this.#shareUsedUp();
    this.#held.add(principalId, byteCount);
  }

  release(byteCount: number, principalId: string | null): void {
    this.#held.add(principalId, -byteCount);
  }

  #full(): SagittaError {
    return overloaded(
      `Bodies of ${this.#held.bytesReserved} bytes are held, of all clients together; with this one it would be more than ${this.#held.bytesMax}.`,
    );
  }

  #shareUsedUp(): SagittaError {
    return overloaded(
      `The share of this credential is used up: its bodies under way may hold ${this.#held.shareBytesMax} bytes, half of what the service holds.`,
    );
  }
}

/** What one body holds, until it is released. */
export class BodyReservation {
  readonly #admission: BodyAdmission;
  readonly #principalId: string | null;
  #byteCount = 0;
  #isReleased = false;
  /** Whether the work on the body has begun: then its end releases the place, whoever has gone away. */
  isWorkedOn = false;

  constructor(admission: BodyAdmission, principalId: string | null) {
    this.#admission = admission;
    this.#principalId = principalId;
  }

  /** As more of the body arrives. Throws `overloaded`. */
  reserveAtLeast(byteCount: number): void {
    if (this.#isReleased || byteCount <= this.#byteCount) return;
    this.#admission.reserve(byteCount - this.#byteCount, this.#byteCount, this.#principalId);
    this.#byteCount = byteCount;
  }

  /** For a body that is worked off while it arrives. Throws `overloaded`. */
  reserve(byteCount: number): void {
    this.reserveAtLeast(byteCount);
    if (this.#isReleased || byteCount === this.#byteCount) return;
    this.#admission.release(this.#byteCount - byteCount, this.#principalId);
    this.#byteCount = byteCount;
  }

  /** Any number of times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#admission.release(this.#byteCount, this.#principalId);
  }
}

function overloaded(detail: string): SagittaError {
  return new SagittaError('overloaded', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}
