// Samples are the rows whose ids have the smallest hashes. Therefore the same ids give the same sample on every server,
// and a write changes the sample by at most its own rows.

import { type Bitmap, createBitmap, type RowSet, rowsIn, setBit } from '../../common/bitmap.js';
import type { Utf8Column } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { type HashKey, hashBytes } from '../../segment/id-hash.js';
import { countVisible, type SegmentView } from '../collection/snapshot.js';

export interface SampleRequest {
  /** The number of rows to choose; all if there are fewer. */
  readonly count: number;
  /** A 32-bit seed. Different seeds give different samples. */
  readonly seed: number;
}

interface SampledSegment extends RowSet {
  readonly ids: Utf8Column;
}

interface SampleInput extends SampleRequest {
  readonly segments: readonly SampledSegment[];
}

/** The views restricted to the sample; all rows without a sample. Rejects with `overloaded`. */
export async function sampleViews<View extends SegmentView>(
  views: readonly View[],
  sample: SampleRequest | undefined,
  pool: WorkerPool,
): Promise<readonly View[]> {
  if (sample === undefined || countVisible(views) <= sample.count) return views;
  const segments = views.map(({ metadata: { ids }, rowCount, rows }) => ({
    ids,
    rowCount,
    rows,
  }));
  const sampled = await pool.run(sampleRowsTask, { segments, ...sample }, { mayBeRefused: true });
  return views.map((view, i) => ({ ...view, ...sampled[i]! }));
}

/** Returns the sampled rows of each segment. Takes 16 bytes per row while it runs. */
export const sampleRowsTask: Task<
  SampleInput,
  readonly { readonly rows: Bitmap; readonly visibleCount: number }[]
> = {
  name: 'bulk.sampleRows',
  run({ segments, count, seed }) {
    const hashes = segments.map((segment) => hashRows(segment, seed));
    const sorted = concatenate(hashes).sort();
    const last = sorted[count - 1]!;
    let lastCount = count - sorted.indexOf(last);
    return segments.map((segment, i) => {
      const rows = createBitmap(segment.rowCount);
      let visibleCount = 0;
      let at = 0;
      for (const row of rowsIn(segment)) {
        const hash = hashes[i]![at++]!;
        // Of rows with equal hashes, which are rare, the first to arrive are chosen.
        if (hash > last || (hash === last && lastCount-- <= 0)) continue;
        setBit(rows, row);
        visibleCount++;
      }
      return { rows, visibleCount };
    });
  },
};

/** 53-bit hashes, in the order of the rows. */
function hashRows(segment: SampledSegment, seed: number): Float64Array {
  const { offsets, bytes } = segment.ids;
  const keys: readonly HashKey[] = [
    [seed, 0],
    [seed, 1],
  ];
  const hashes = new Float64Array(segment.rowCount);
  let count = 0;
  for (const row of rowsIn(segment)) {
    const id = bytes.subarray(offsets[row]!, offsets[row + 1]!);
    hashes[count++] = hashBytes(id, keys[0]!) * 2 ** 21 + (hashBytes(id, keys[1]!) >>> 11);
  }
  return hashes.subarray(0, count);
}

function concatenate(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
