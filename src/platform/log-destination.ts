// Writes log lines to a file descriptor, which may refer to a file on a full disk. A line that cannot be written is
// dropped and counted; the service neither fails nor waits. Lines are written asynchronously, many at a time; lines
// that are still queued when the process exits are written synchronously.

import { write, writeSync } from 'node:fs';

/** Maximum size of the queue; further lines are dropped. A pipe whose reader has stalled fills it. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;
/** Delay before the next attempt to write to a full pipe. */
const RETRY_MS = 50;
/** Maximum time that the exit of the process waits for a reader. */
const EXIT_MS_MAX = 1_000;
/** Time that a running write gets to finish at exit. */
const IN_FLIGHT_MS = 10;
const LINE_END = 0x0a;

export class LogDestination {
  readonly #descriptor: number;
  readonly #format: (line: string) => string;
  #waiting: string[] = [];
  #waitingLength = 0;
  /** The bytes that are being written. */
  #current: Uint8Array = new Uint8Array(0);
  /** Remaining bytes of the prefix before the lines in `#current`, and the number of drops that it reports. */
  #prefixLength = 0;
  #prefixDropCount = 0;
  /** Whether the last byte written was the end of a line. */
  #isAtLineEnd = true;
  #isWriting = false;
  #isInFlight = false;
  #lostCount = 0;

  /** `format` turns a line of JSON into the text to write; without it, lines are written as they are. */
  constructor(descriptor: number, format = (line: string): string => line) {
    this.#descriptor = descriptor;
    this.#format = format;
    process.on('exit', () => this.#flushAtExit());
  }

  /** `json` is a single object followed by a line feed. */
  write(json: string): void {
    const line = this.#format(json);
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
        setTimeout(() => this.#writeNext(), RETRY_MS);
        return;
      }
      if (error === null) this.#wrote(byteCount);
      else this.#dropCurrent();
      this.#writeNext();
    });
  }

  #takeWaiting(): Buffer {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingLength = 0;
    if (lines.length === 0) return Buffer.alloc(0);
    // Ends a partially written line first.
    let prefix = this.#isAtLineEnd ? '' : '\n';
    // Drops are reported where the gap is: before the lines that follow it.
    if (this.#lostCount > 0) {
      prefix += this.#format(
        `{"level":40,"time":${Date.now()},"lines":${this.#lostCount},"msg":"log lines were dropped because they could not be written"}\n`,
      );
    }
    this.#prefixLength = prefix.length;
    this.#prefixDropCount = this.#lostCount;
    this.#lostCount = 0;
    return Buffer.from(prefix + lines.join(''));
  }

  #wrote(byteCount: number): void {
    if (byteCount > 0) this.#isAtLineEnd = this.#current[byteCount - 1] === LINE_END;
    this.#current = this.#current.subarray(byteCount);
    this.#prefixLength = Math.max(0, this.#prefixLength - byteCount);
  }

  #dropCurrent(): void {
    // A report that was not written is repeated.
    if (this.#prefixLength > 0) this.#lostCount += this.#prefixDropCount;
    for (const byte of this.#current.subarray(this.#prefixLength)) {
      if (byte === LINE_END) this.#lostCount++;
    }
    this.#prefixLength = 0;
    this.#current = new Uint8Array(0);
  }

  #flushAtExit(): void {
    // A pool thread is writing these bytes and will finish before the process is gone; later lines wait for that.
    if (this.#isInFlight) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, IN_FLIGHT_MS);
      this.#current = new Uint8Array(0);
    }
    const endsAt = performance.now() + EXIT_MS_MAX;
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
