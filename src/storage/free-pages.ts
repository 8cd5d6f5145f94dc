// Gives the free pages of an lmdb file back to the file system. lmdb keeps them for later transactions and never
// makes its file shorter: the space of deleted collections would serve nothing else, and not even long values
// when there are too few pages in a row. As holes they take no space, and lmdb uses them like before.

import { closeSync, openSync } from 'node:fs';
import { loadNativeFiles, type NativeFiles } from '../platform/native-files.js';
import { LmdbPages } from './lmdb-pages.js';

/** Per part, which takes about a millisecond: the file system has to find and free each of the pages. */
const PART_BYTES_MAX = 4 * 1024 * 1024;
const PART_RANGES_MAX = 256;
/** A busy disk takes longer for each page, and the event loop stands still meanwhile. */
const PART_MS_MAX = 4;

/**
 * Releases the pages that neither of the last two transactions uses, in the order of the file and in parts,
 * between which transactions may run: lmdb starts with the older of the two when the meta page of the other is
 * damaged. During a part no transaction may run, and no reader may have an older snapshot. What is a hole
 * already is skipped.
 */
export class FreePageRelease {
  readonly #path: string;
  /** Pairs of offset and length in bytes, ascending; undefined when they have to be read. */
  #ranges: readonly number[] | undefined;
  /** Of the range to go on with. */
  #at = 0;
  /** In bytes. Everything before has been released. */
  #offset = 0;

  readonly #nowMs: () => number;

  constructor(path: string, nowMs: () => number = () => performance.now()) {
    this.#path = path;
    this.#nowMs = nowMs;
  }

  /** To be called after each transaction, which may have used some of the free pages. */
  forgetRanges(): void {
    this.#ranges = undefined;
    this.#at = 0;
  }

  /**
   * Returns whether there may be more to release; false where holes cannot be made. Throws errors of the
   * system, and `data_corrupt`.
   */
  releasePart(): boolean {
    const native = loadNativeFiles();
    if (typeof native === 'string' || native.makeHole === undefined) return false;
    this.#ranges ??= freeRanges(this.#path);
    const descriptor = openSync(this.#path, 'r+');
    try {
      return this.#releaseFrom(descriptor, this.#ranges, native as Required<NativeFiles>);
    } finally {
      closeSync(descriptor);
    }
  }

  #releaseFrom(
    descriptor: number,
    ranges: readonly number[],
    native: Required<NativeFiles>,
  ): boolean {
    const endMs = this.#nowMs() + PART_MS_MAX;
    let byteCount = 0;
    for (let count = 0; count < PART_RANGES_MAX && byteCount < PART_BYTES_MAX; count++) {
      if (count > 0 && this.#nowMs() > endMs) break;
      this.#skipBefore(this.#offset);
      if (this.#at === ranges.length) return false;
      const start = Math.max(this.#offset, ranges[this.#at]!);
      this.#offset = native.dataFrom(descriptor, start) ?? Infinity;
      this.#skipBefore(this.#offset);
      if (this.#at === ranges.length) return false;
      const end = ranges[this.#at]! + ranges[this.#at + 1]!;
      // The data may be of a used page before the next range.
      if (this.#offset < ranges[this.#at]!) continue;
      const length = Math.min(end - this.#offset, PART_BYTES_MAX - byteCount);
      native.makeHole(descriptor, this.#offset, length);
      this.#offset += length;
      byteCount += length;
    }
    return true;
  }

  /** Goes on to the first range that reaches beyond the offset. */
  #skipBefore(offset: number): void {
    const ranges = this.#ranges!;
    while (this.#at < ranges.length && ranges[this.#at]! + ranges[this.#at + 1]! <= offset) {
      this.#at += 2;
    }
  }
}

/** Pairs of offset and length in bytes, ascending; neighbours are one range. */
function freeRanges(path: string): number[] {
  const pages = LmdbPages.open(path);
  try {
    const { pageBytes } = pages;
    const runs = [...pages.freeRuns()].sort(([a], [b]) => a - b);
    const ranges: number[] = [];
    let end = 0;
    for (const [first, count] of runs) {
      if (first === end) ranges[ranges.length - 1]! += count * pageBytes;
      else ranges.push(first * pageBytes, count * pageBytes);
      end = first + count;
    }
    return ranges;
  } finally {
    pages.close();
  }
}
