// Which sequence was current how long ago: what tells a compaction which ended rows no snapshot
// can still see. After a restart the past is unknown, so it starts anew and errs on keeping.

interface Mark {
  readonly timeMs: number;
  readonly sequence: number;
}

/** Marks per retention: the horizon lags by at most this fraction of it. */
const MARKS_PER_RETENTION = 60;

export class SequenceHistory {
  readonly #retentionMs: number;
  #marks: Mark[] = [];

  constructor(retentionMs: number) {
    this.#retentionMs = retentionMs;
  }

  /** Notes that `sequence` is current from now on. */
  note(timeMs: number, sequence: number): void {
    const last = this.#marks.at(-1);
    const distanceMs = this.#retentionMs / MARKS_PER_RETENTION;
    if (last !== undefined && timeMs - last.timeMs < distanceMs) return;
    this.#marks.push({ timeMs, sequence });
    // The newest mark older than the retention is the horizon; those before it say nothing more.
    const firstYoung = this.#marks.findIndex((mark) => timeMs - mark.timeMs <= this.#retentionMs);
    if (firstYoung > 1) this.#marks = this.#marks.slice(firstYoung - 1);
  }

  /** No snapshot that a cursor may still name is older than this sequence. */
  horizon(timeMs: number): number {
    let sequence = 0;
    for (const mark of this.#marks) {
      if (timeMs - mark.timeMs > this.#retentionMs) sequence = mark.sequence;
    }
    return sequence;
  }
}
