// Gives the free pages of an lmdb file back to the file system. lmdb keeps them for later transactions and never
// makes its file shorter: the space of deleted collections would serve nothing else, and not even long values
// when there are too few pages in a row. As holes they take no space, and lmdb uses them like before.

import { closeSync, openSync } from 'node:fs';
import { loadNativeFiles } from '../platform/native-files.js';
import { LmdbPages } from './lmdb-pages.js';

/** Ranges per call, which takes about a millisecond. */
const CALL_RANGES_MAX = 256;

/**
 * Releases the pages that neither of the last two transactions uses: lmdb starts with the older one when
 * the meta page of the other is damaged. No transaction may run, and no reader may have an older snapshot.
 * Does nothing where holes cannot be made. Throws errors of the system, and `data_corrupt`.
 */
export async function releaseFreePages(path: string): Promise<void> {
  const native = loadNativeFiles();
  if (typeof native === 'string' || native.makeHoles === undefined) return;
  const ranges = freeRanges(path);
  const descriptor = openSync(path, 'r+');
  try {
    for (let at = 0; at < ranges.length; at += 2 * CALL_RANGES_MAX) {
      native.makeHoles(descriptor, ranges.subarray(at, at + 2 * CALL_RANGES_MAX));
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Pairs of offset and length in bytes; neighbours are one range. */
function freeRanges(path: string): Float64Array {
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
    return new Float64Array(ranges);
  } finally {
    pages.close();
  }
}
