// Where the lines of the log go: a descriptor, which may be a file on the very disk that is full. A
// line that cannot be written is lost and counted; the service neither ends nor waits for it. Lines
// are written behind the caller's back, many at once, and what is left when the process ends is
// written then.

import { write, writeSync } from 'node:fs';

/** What may wait; lines beyond are lost. A pipe whose reader stands still fills this. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;
/** A pipe that is full has room soon. */
const AGAIN_MS = 50;
/** At the end of the process nobody waits longer for a reader. */
const END_MS_MAX = 1_000;
const IN_FLIGHT_MS = 10;
const LINE_END = 0x0a;

export class LogDestination {
  readonly #descriptor: number;
  #waiting: string[] = [];
  #waitingLength = 0;
  /** What is being written. */
  #current: Uint8Array = new Uint8Array(0);
  /** Whether the last byte that was written is the end of a line. */
  #isAtLineEnd = true;
  #isWriting = false;
  #isInFlight = false;
  #lostCount = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    process.on('exit', () => this.#end());
  }

  /** One line with its end. */
  write(line: string): void {
    if (this.#waitingLength + line.length > WAITING_BYTES_MAX) {
      this.#lostCount++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (!this.#isWriting) this.#writeNext();
  }

  #writeNext(): void {
    if (this.#current.byteLength === 0) this.#current = this.#takeWaiting();
    this.#isWriting = this.#current.byteLength > 0;
    if (!this.#isWriting) return;
    this.#isInFlight = true;
    write(this.#descriptor, this.#current, (error, byteCount) => {
      this.#isInFlight = false;
      if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#writeNext(), AGAIN_MS);
        return;
      }
      if (error === null) this.#wrote(byteCount);
      else this.#lose();
      this.#writeNext();
    });
  }

  #takeWaiting(): Buffer {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingLength = 0;
    // First where it shows: behind the gap.
    if (this.#lostCount > 0 && lines.length > 0) {
      lines.unshift(
        `{"level":40,"time":${Date.now()},"lines":${this.#lostCount},"msg":"lines of the log are lost: they could not be written"}\n`,
      );
      this.#lostCount = 0;
    }
    // Half a line stays alone.
    if (!this.#isAtLineEnd && lines.length > 0) lines.unshift('\n');
    return Buffer.from(lines.join(''));
  }

  #wrote(byteCount: number): void {
    if (byteCount > 0) this.#isAtLineEnd = this.#current[byteCount - 1] === LINE_END;
    this.#current = this.#current.subarray(byteCount);
  }

  #lose(): void {
    for (const byte of this.#current) if (byte === LINE_END) this.#lostCount++;
    this.#current = new Uint8Array(0);
  }

  #end(): void {
    // A thread is about to write this, and does so before the process is gone; what comes after it
    // waits for that moment.
    if (this.#isInFlight) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, IN_FLIGHT_MS);
      this.#current = new Uint8Array(0);
    }
    const endsAt = performance.now() + END_MS_MAX;
    while (performance.now() < endsAt) {
      if (this.#current.byteLength === 0) this.#current = this.#takeWaiting();
      if (this.#current.byteLength === 0) return;
      try {
        this.#wrote(writeSync(this.#descriptor, this.#current));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      }
    }
  }
}
