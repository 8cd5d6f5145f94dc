// Limits the bytes of request bodies in memory over all connections. Bytes count from their arrival, whatever
// Content-Length says, until the work on the body is done. Bodies that do not fit are refused at once. The memory
// of large bodies is reused.

import { BufferPool } from '../../common/buffer-pool.js';
import { overloadedError, type SagittaError } from '../../common/errors.js';
import { collectGarbageSoon } from '../../common/garbage.js';
import { MemoryBudget, NO_PRESSURE, type Pressure } from './memory-budget.js';

/** The length of the smallest pooled buffers, which smaller bodies use too. */
const BUFFER_BYTES_MIN = 256 * 1024;
/** Enough for typical concurrency: one of the longest bodies, or hundreds of short ones. */
const BUFFERS_KEPT_MAX = 256;
const BUFFER_BYTES_KEPT_MAX = 64_000_000;
/** Bytes of dropped buffers after which a garbage collection is requested. */
const GARBAGE_BYTES_MAX = 64_000_000;

export class BodyAdmission {
  readonly #budget: MemoryBudget;
  readonly #buffers = new BufferPool((byteCount) => new SharedArrayBuffer(byteCount), {
    countMax: BUFFERS_KEPT_MAX,
    bytesMax: BUFFER_BYTES_KEPT_MAX,
  });

  #garbageBytes = 0;

  constructor({ bytesMax, pressure = NO_PRESSURE }: { bytesMax: number; pressure?: Pressure }) {
    this.#budget = new MemoryBudget(bytesMax, pressure);
  }

  /** The total of all reservations, for metrics. */
  get bytesInFlight(): number {
    return this.#budget.bytesReserved;
  }

  /** The number of principals with bodies in flight that count against a share. */
  get principalCount(): number {
    return this.#budget.principalCount;
  }

  /**
   * Called for an announced body. Throws `overloaded` if the limit has been reached. `principalId` names the share that
   * the body counts against; null for none.
   */
  check(principalId: string | null): void {
    const { bytesReserved, bytesMax, shareBytesMax } = this.#budget;
    if (bytesReserved >= bytesMax) throw this.#limitError();
    if (this.#budget.reservedBy(principalId) >= shareBytesMax) throw this.#shareError();
  }

  /** An empty reservation. */
  open(principalId: string | null): BodyReservation {
    return new BodyReservation(this, principalId);
  }

  /**
   * `own` is what the same body has already reserved. The only body of the service, or of a share, always fits, so that
   * it can be completed. Throws `overloaded` without reserving anything.
   */
  reserve(byteCount: number, own: number, principalId: string | null): void {
    if (!this.#budget.hasRoom(byteCount, own)) throw this.#limitError();
    if (!this.#budget.hasShare(principalId, byteCount, own)) throw this.#shareError();
    this.#budget.add(principalId, byteCount);
  }

  release(byteCount: number, principalId: string | null): void {
    this.#budget.add(principalId, -byteCount);
  }

  /** Shared memory, which workers read without a copy. The system maps its pages as they are written. */
  allocate(byteCount: number): Uint8Array {
    return this.#buffers.acquire(Math.max(byteCount, BUFFER_BYTES_MIN)).subarray(0, byteCount);
  }

  /** Drops the pooled buffers. */
  dropPool(): void {
    this.#buffers.drop();
  }

  /** Returns memory of `allocate` to the pool. */
  recycle(memory: Uint8Array): void {
    this.#garbageBytes += this.#buffers.release(memory);
    if (this.#garbageBytes < GARBAGE_BYTES_MAX) return;
    this.#garbageBytes = 0;
    collectGarbageSoon();
  }

  #limitError(): SagittaError {
    const { bytesReserved, bytesMax } = this.#budget;
    return overloadedError(
      this.#budget.isPressed
        ? `The memory of the service is almost exhausted, and other request bodies are in progress (${bytesReserved} bytes).`
        : `Too many request bodies are in progress (${bytesReserved} bytes; this one would exceed the limit of ${bytesMax}).`,
    );
  }

  #shareError(): SagittaError {
    return overloadedError(
      `Too many request bodies of this credential are in progress (limit ${this.#budget.shareBytesMax} bytes, half of the total).`,
    );
  }
}

/** The memory reserved for one body, until it is released. */
export class BodyReservation {
  readonly #admission: BodyAdmission;
  readonly #principalId: string | null;
  #byteCount = 0;
  #isReleased = false;
  readonly #memory: Uint8Array[] = [];
  /** Whether work on the body has begun. Then the end of the work releases it, not that of the connection. */
  isInUse = false;

  constructor(admission: BodyAdmission, principalId: string | null) {
    this.#admission = admission;
    this.#principalId = principalId;
  }

  /** Raises the reservation to `byteCount` as more of the body arrives. Throws `overloaded`. */
  reserveAtLeast(byteCount: number): void {
    if (this.#isReleased || byteCount <= this.#byteCount) return;
    this.#admission.reserve(byteCount - this.#byteCount, this.#byteCount, this.#principalId);
    this.#byteCount = byteCount;
  }

  /** Raises or lowers the reservation of a stream, which is processed while it arrives. Throws `overloaded`. */
  reserve(byteCount: number): void {
    this.reserveAtLeast(byteCount);
    if (this.#isReleased || byteCount === this.#byteCount) return;
    this.#admission.release(this.#byteCount - byteCount, this.#principalId);
    this.#byteCount = byteCount;
  }

  /** Memory for the body, valid until `end`. Its contents are undefined. */
  allocate(byteCount: number): Uint8Array {
    const memory = this.#admission.allocate(byteCount);
    this.#memory.push(memory);
    return memory;
  }

  /** Releases the reservation and recycles the memory. Called when the body is no longer read. */
  end(): void {
    this.release();
    for (const memory of this.#memory.splice(0)) this.#admission.recycle(memory);
  }

  /** May be called any number of times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#admission.release(this.#byteCount, this.#principalId);
  }
}
