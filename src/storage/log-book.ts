// What a store knows of its logs without reading them: the last sequence, how far each is trimmed,
// which are dropped, and how many bytes those records have that were appended or read since it was
// opened. Told of a change only when the change is on disk.

export type LogChange =
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly byteLength: number;
    }
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  | { readonly kind: 'dropLog'; readonly log: string };

interface LogPage {
  lastSequence: number;
  trimmedThrough: number;
  /** By sequence, of the records that count into `byteLength`. */
  byteLengths: Map<number, number>;
  byteLength: number;
}

export class LogBook {
  readonly #pages = new Map<string, LogPage>();
  readonly #dropped = new Set<string>();

  /** What the disk knows of a log that was not opened before. */
  enter(log: string, lastSequence: number, trimmedThrough: number): void {
    this.#pages.set(log, {
      lastSequence: Math.max(lastSequence, trimmedThrough),
      trimmedThrough,
      byteLengths: new Map(),
      byteLength: 0,
    });
  }

  has(log: string): boolean {
    return this.#pages.has(log);
  }

  isDropped(log: string): boolean {
    return this.#dropped.has(log);
  }

  /** The greatest sequence the log ever had; 0 when it had none. */
  lastSequenceOf(log: string): number {
    return this.#pages.get(log)?.lastSequence ?? 0;
  }

  trimmedThrough(log: string): number {
    return this.#pages.get(log)?.trimmedThrough ?? 0;
  }

  byteLengthOf(log: string): number {
    return this.#pages.get(log)?.byteLength ?? 0;
  }

  apply(change: LogChange): void {
    switch (change.kind) {
      case 'append':
        this.count(change.log, change.sequence, change.byteLength);
        break;
      case 'trim':
        this.#trim(change.log, change.throughSequence);
        break;
      case 'dropLog':
        this.#pages.delete(change.log);
        this.#dropped.add(change.log);
        break;
    }
  }

  /** A record was appended or read. A log may be read twice: one that counts already counts once. */
  count(log: string, sequence: number, byteLength: number): void {
    if (!this.#pages.has(log)) this.enter(log, 0, 0);
    const page = this.#pages.get(log)!;
    page.lastSequence = Math.max(page.lastSequence, sequence);
    if (sequence <= page.trimmedThrough || page.byteLengths.has(sequence)) return;
    page.byteLengths.set(sequence, byteLength);
    page.byteLength += byteLength;
  }

  #trim(log: string, throughSequence: number): void {
    const page = this.#pages.get(log);
    if (page === undefined || throughSequence <= page.trimmedThrough) return;
    page.trimmedThrough = throughSequence;
    const counted = page.byteLengths;
    page.byteLengths = new Map();
    page.byteLength = 0;
    for (const [sequence, byteLength] of counted) this.count(log, sequence, byteLength);
  }
}
