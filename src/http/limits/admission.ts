// How many bytes of bodies the service holds at once, over all connections. Bytes count from when
// they arrive, whatever a head says of them, until nothing works on their body any more; what does
// not fit is refused at once. Knows neither requests nor who reads.

import { SagittaError } from '../../errors.js';

/** Other bodies are worked off within about that time. */
const RETRY_AFTER_SECONDS = 1;

/** Of the bytes that may be held, for one principal: another one always finds room beside it. */
const PRINCIPAL_SHARE = 1 / 2;

export class BodyAdmission {
  readonly #bytesMax: number;
  readonly #shareBytesMax: number;
  #bytesInFlight = 0;
  /** Of each principal that has a share and holds something of it. */
  readonly #bytesOf = new Map<string, number>();

  constructor(options: { bytesMax: number }) {
    this.#bytesMax = options.bytesMax;
    this.#shareBytesMax = Math.floor(options.bytesMax * PRINCIPAL_SHARE);
  }

  /** For metrics. */
  get bytesInFlight(): number {
    return this.#bytesInFlight;
  }

  /** Those that hold something and are bounded by a share. */
  get principalCount(): number {
    return this.#bytesOf.size;
  }

  /**
   * For a body that is announced: throws `overloaded` when what is held leaves no room at all.
   * `principalId`: whose share it takes from, null for one that has no share.
   */
  check(principalId: string | null): void {
    if (this.#bytesInFlight >= this.#bytesMax) throw this.#full();
    if (this.#heldBy(principalId) >= this.#shareBytesMax) throw this.#shareUsedUp();
  }

  /** A place that holds nothing yet. */
  open(principalId: string | null): BodyPlace {
    return new BodyPlace(this, principalId);
  }

  /**
   * `held`: what the same body has already. A body is never too large for a service, or a share,
   * that has no other: it can always be finished. Throws `overloaded`, and then takes nothing.
   */
  take(byteCount: number, held: number, principalId: string | null): void {
    if (this.#bytesInFlight > held && this.#bytesInFlight + byteCount > this.#bytesMax) {
      throw this.#full();
    }
    const own = this.#heldBy(principalId);
    if (own > held && own + byteCount > this.#shareBytesMax) throw this.#shareUsedUp();
    this.#add(byteCount, principalId);
  }

  giveBack(byteCount: number, principalId: string | null): void {
    this.#add(-byteCount, principalId);
  }

  #heldBy(principalId: string | null): number {
    return principalId === null ? 0 : (this.#bytesOf.get(principalId) ?? 0);
  }

  #add(byteCount: number, principalId: string | null): void {
    this.#bytesInFlight += byteCount;
    if (principalId === null) return;
    const held = this.#heldBy(principalId) + byteCount;
    if (held === 0) this.#bytesOf.delete(principalId);
    else this.#bytesOf.set(principalId, held);
  }

  #full(): SagittaError {
    return overloaded(
      `Bodies of ${this.#bytesInFlight} bytes are held, of all clients together; with this one it would be more than ${this.#bytesMax}.`,
    );
  }

  #shareUsedUp(): SagittaError {
    return overloaded(
      `The share of this credential is used up: its bodies under way may hold ${this.#shareBytesMax} bytes, half of what the service holds.`,
    );
  }
}

/** What one body holds, until it is released. */
export class BodyPlace {
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
  holdAtLeast(byteCount: number): void {
    if (this.#isReleased || byteCount <= this.#byteCount) return;
    this.#admission.take(byteCount - this.#byteCount, this.#byteCount, this.#principalId);
    this.#byteCount = byteCount;
  }

  /** Any number of times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#admission.giveBack(this.#byteCount, this.#principalId);
  }
}

function overloaded(detail: string): SagittaError {
  return new SagittaError('overloaded', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}
