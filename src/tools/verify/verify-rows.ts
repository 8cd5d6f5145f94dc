// What must hold for rows, wherever they stand: in a log record or in a segment file.

import { isUtf8 } from 'node:buffer';
import { DEFAULT_LIMITS } from '../../common/limits.js';
import type { Metric, Utf8Column } from '../../common/types.js';

export interface RowsToCheck {
  readonly count: number;
  readonly ids: Utf8Column;
  /** Row-major [count, dimension]. */
  readonly values: Float32Array;
  /** JSON text. */
  readonly metadata: Utf8Column;
}

export function checkRows(
  { count, ids, values, metadata }: RowsToCheck,
  shape: { readonly dimension: number; readonly metric: Metric },
  tell: (what: string) => void,
): void {
  checkIds(ids, count, tell);
  checkValues(values, count, shape, tell);
  const texts = textsOf(metadata, count);
  for (let row = 0; row < count; row++) {
    const text = texts(row);
    if (text === undefined || !isJsonObject(text)) {
      tell(`row ${row}: its metadata is not a JSON object`);
    }
  }
}

export function checkIds(ids: Utf8Column, count: number, tell: (what: string) => void): void {
  const texts = textsOf(ids, count);
  for (let row = 0; row < count; row++) {
    const byteLength = ids.offsets[row + 1]! - ids.offsets[row]!;
    if (byteLength < 1 || byteLength > DEFAULT_LIMITS.vectorIdBytesMax) {
      tell(`row ${row}: its id has ${byteLength} bytes`);
    } else if (texts(row) === undefined) {
      tell(`row ${row}: its id is not UTF-8`);
    }
  }
}

function checkValues(
  values: Float32Array,
  count: number,
  { dimension, metric }: { dimension: number; metric: Metric },
  tell: (what: string) => void,
): void {
  for (let row = 0; row < count; row++) {
    let isZero = true;
    for (let i = row * dimension; i < (row + 1) * dimension; i++) {
      const value = values[i]!;
      if (value !== 0) isZero = false;
      if (!Number.isFinite(value)) {
        tell(`row ${row}: value ${i - row * dimension} is ${value}`);
        break;
      }
    }
    if (isZero && metric === 'cosine') tell(`row ${row}: all its values are zero, under cosine`);
  }
}

/** Gives the text of a row, or undefined where it is not UTF-8. */
function textsOf(
  { offsets, bytes }: Utf8Column,
  count: number,
): (row: number) => string | undefined {
  const start = offsets[0]!;
  // A copy, since nothing that decodes takes shared memory; strict rows are cut out of it.
  const copy = Buffer.from(bytes.subarray(start, offsets[count]!));
  return (row) => {
    const text = copy.subarray(offsets[row]! - start, offsets[row + 1]! - start);
    return isUtf8(text) ? text.toString('utf8') : undefined;
  };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
