// Guards a collection against damage to its files. After a start every checksum is verified once in the
// background, and no request is answered before that. A mapped file that later cannot be read is noticed after the
// work that read it, whose result is then discarded. A damaged collection stays damaged, and so does one of which parts
// that are not on this disk could not be fetched: it has to be loaded again.

import { blocksUnavailableError, SagittaError } from '../../common/errors.js';
import type { MappingFailure } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { Segment } from '../../segment/segment.js';
import { type StoredSegment, verifySegmentTask } from '../../segment/segment-file.js';

/** Files up to this size are verified on the calling thread, which takes less time than a pool task (50 µs). */
const SMALL_FILE_BYTES_MAX = 64 * 1024;

/** A loaded file whose checksum is to be verified. */
export interface LoadedFile extends StoredSegment {
  /** The name of the blob, for messages. */
  readonly name: string;
  readonly segment: Segment;
}

/** Verifies files in the pool, one per thread at a time; files of guards with waiting readers come first. */
export class VerificationQueue {
  readonly #pool: WorkerPool;
  /** Guards that may have files to verify. */
  readonly #guards = new Set<FileGuard>();
  /** The guards with waiting readers. */
  readonly #urgent = new Set<FileGuard>();
  readonly #running = new Set<Promise<void>>();
  #isClosed = false;

  constructor(pool: WorkerPool) {
    this.#pool = pool;
  }

  /** Called when the guard has a file to verify or its files become urgent. */
  add(guard: FileGuard): void {
    this.#guards.add(guard);
    if (guard.isUrgent) this.#urgent.add(guard);
    this.#startNext();
  }

  #startNext(): void {
    while (!this.#isClosed && this.#running.size < this.#pool.threadCount) {
      const next = this.#take();
      if (next === undefined) return;
      const { guard: owner, file } = next;
      const { bytes, checksum, kept = null } = file;
      const stored = { bytes, checksum, kept };
      const running: Promise<void> = this.#pool.run(verifySegmentTask, stored).then(
        () => this.#ended(running, owner, file, null),
        (error: unknown) => this.#ended(running, owner, file, error),
      );
      this.#running.add(running);
    }
  }

  /**
   * Starts no more verifications and waits for those in progress. Closing the pool during a verification would fail the
   * task, which would look like damage to the file.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#running);
  }

  #take(): { guard: FileGuard; file: LoadedFile } | undefined {
    for (const guards of [this.#urgent, this.#guards]) {
      for (const guard of guards) {
        const file = guard.take();
        if (file !== undefined) return { guard, file };
        guards.delete(guard);
      }
    }
    return undefined;
  }

  #ended(running: Promise<void>, guard: FileGuard, file: LoadedFile, error: unknown): void {
    this.#running.delete(running);
    guard.verified(file, error);
    this.#startNext();
  }
}

export class FileGuard {
  /** Whether readers wait for the verification. */
  isUrgent = false;
  readonly #queue: VerificationQueue;
  readonly #onDamaged: (error: SagittaError) => void;
  #waiting: LoadedFile[] = [];
  /** Files not verified yet, including those in progress. */
  #unverifiedCount = 0;
  #readers: (() => void)[] = [];
  #damage: SagittaError | null = null;

  /** `onDamaged` is called once, with a `data_corrupt` or `collection_unavailable` naming the file. */
  constructor(options: {
    readonly queue: VerificationQueue;
    readonly onDamaged: (error: SagittaError) => void;
  }) {
    this.#queue = options.queue;
    this.#onDamaged = options.onDamaged;
  }

  /** Queues the file of a segment for verification; verifies a small file immediately. */
  add(file: LoadedFile): void {
    this.#unverifiedCount++;
    if (file.bytes.byteLength <= SMALL_FILE_BYTES_MAX) {
      this.verified(file, damageIn(file));
      return;
    }
    this.#waiting.push(file);
    this.#queue.add(this);
  }

  /** Takes the next file to verify. */
  take(): LoadedFile | undefined {
    return this.#waiting.shift();
  }

  /** Called by the queue. */
  verified(file: LoadedFile, error: unknown): void {
    this.#unverifiedCount--;
    const { failure } = file.segment;
    // A block that could not be fetched, and reads as zeros, has the wrong checksum too.
    if (failure !== null) this.#fail(failureOf(file.name, failure));
    else if (error !== null) this.#fail(damageOf(file.name, error));
    this.#answerReaders();
  }

  /** Makes the verification urgent and resolves when every file is verified; undefined if they already are. */
  whenVerified(): Promise<void> | undefined {
    if (this.#unverifiedCount === 0) return undefined;
    if (!this.isUrgent) {
      this.isUrgent = true;
      this.#queue.add(this);
    }
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** Throws `data_corrupt` if a file is known to be damaged, and `collection_unavailable` if it could not be fetched. */
  requireIntact(segments: Iterable<Segment>): void {
    if (this.#damage === null) {
      for (const { failure, key } of segments) {
        if (failure !== null) this.#fail(failureOf(key, failure));
      }
    }
    if (this.#damage !== null) throw this.#damage;
  }

  #fail(error: SagittaError): void {
    if (this.#damage !== null) return;
    this.#damage = error;
    this.#unverifiedCount -= this.#waiting.length;
    this.#waiting = [];
    this.#answerReaders();
    this.#onDamaged(error);
  }

  #answerReaders(): void {
    if (this.#unverifiedCount > 0) return;
    for (const resolve of this.#readers.splice(0)) resolve();
  }
}

/** The error that verifying the file throws; null for an intact file. */
function damageIn(file: LoadedFile): unknown {
  try {
    verifySegmentTask.run(file);
    return null;
  } catch (error) {
    return error;
  }
}

/** The message about a damaged segment file; `found` is a sentence. */
export function damagedSegmentFile(name: string, found: string): string {
  return `Segment file ${name} is damaged: ${found} Run "sagitta verify" to find other damage, and restore a backup.`;
}

function damageOf(name: string, cause: unknown): SagittaError {
  const found = cause instanceof Error ? cause.message : String(cause);
  return new SagittaError('data_corrupt', damagedSegmentFile(name, found), { cause });
}

function failureOf(name: string, failure: MappingFailure): SagittaError {
  if (failure === 'unavailable') return blocksUnavailableError(name);
  return damageOf(name, 'a part of it could not be read: it was cut, or the disk failed.');
}
