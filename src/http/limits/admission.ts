// How many bytes of bodies the service holds at once, over all connections. A body is reserved
// before it is read and given back when nothing works on it any more; what does not fit is refused
// at once. Knows neither requests nor who reads.

import { SagittaError } from '../../errors.js';

/** Other bodies are worked off within about that time. */
const RETRY_AFTER_SECONDS = 1;

export class BodyAdmission {
  readonly #bytesMax: number;
  #bytesInFlight = 0;

  constructor(options: { bytesMax: number }) {
    this.#bytesMax = options.bytesMax;
  }

  /** For metrics. */
  get bytesInFlight(): number {
    return this.#bytesInFlight;
  }

  /** A place for a body of so many bytes, 0 where that is not known yet. Throws `overloaded`. */
  reserve(byteCount: number): BodyPlace {
    return new BodyPlace(this, byteCount);
  }

  /** `held`: what the same body has already. A body is never too large for a service that has no other. */
  take(byteCount: number, held: number): void {
    const others = this.#bytesInFlight - held;
    if (others > 0 && this.#bytesInFlight + byteCount > this.#bytesMax) {
      throw new SagittaError(
        'overloaded',
        `Bodies of ${this.#bytesInFlight} bytes are being worked on; with this one it would be more than ${this.#bytesMax}.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
    this.#bytesInFlight += byteCount;
  }

  giveBack(byteCount: number): void {
    this.#bytesInFlight -= byteCount;
  }
}

/** What one body holds, until it is released. */
export class BodyPlace {
  readonly #admission: BodyAdmission;
  #byteCount = 0;
  #isReleased = false;
  /** Whether the work on the body has begun: then its end releases the place, whoever has gone away. */
  isWorkedOn = false;

  constructor(admission: BodyAdmission, byteCount: number) {
    this.#admission = admission;
    this.holdAtLeast(byteCount);
  }

  /** For bodies that do not say how long they are. Throws `overloaded`. */
  holdAtLeast(byteCount: number): void {
    if (this.#isReleased || byteCount <= this.#byteCount) return;
    this.#admission.take(byteCount - this.#byteCount, this.#byteCount);
    this.#byteCount = byteCount;
  }

  /** Any number of times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#admission.giveBack(this.#byteCount);
  }
}
