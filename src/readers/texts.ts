// Rows whose vectors the server makes of a text.

import type { JsonObject } from '../common/types.js';
import { ReadError, show } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import { type RowBatch, withoutBadRows } from './row-batch.js';

/**
 * The number of texts in one write. The built-in model takes a second or two for them, after which they are durable and
 * counted as progress.
 */
export const EMBED_ROWS_MAX = 256;

/** The options of a reader for rows with texts, which have no unnamed vectors. */
export function optionsForTexts(options: ReaderOptions): ReaderOptions {
  return {
    ...options,
    rowsPerBatch: Math.min(options.rowsPerBatch, EMBED_ROWS_MAX),
    vectors: { named: new Map(), ...options.vectors, hasUnnamed: false },
  };
}

/**
 * The batches with the texts of a metadata field; rows without a text are bad rows. Throws RowError for a bad row when
 * the options have no `onBadRow`, and ReadError for rows that have vectors.
 */
export async function* withTexts(
  batches: AsyncIterable<RowBatch>,
  field: string,
  options: Pick<ReaderOptions, 'onBadRow'>,
): AsyncGenerator<RowBatch> {
  for await (const batch of batches) {
    if (batch.dimension > 0) {
      throw new ReadError(
        `${batch.location(0)}: found a vector beside the text in ${field}; leave out one of them`,
        { isUsage: true },
      );
    }
    const problems = new Map<number, string>();
    const texts = Array.from({ length: batch.rowCount }, (_, row) => {
      const metadata = JSON.parse(batch.metadata?.[row] ?? '{}') as JsonObject;
      const text = Object.hasOwn(metadata, field) ? metadata[field] : undefined;
      if (typeof text === 'string' && text.trim() !== '') return text;
      problems.set(row, describeMissing(field, text, metadata));
      return '';
    });
    if (yield* withoutBadRows({ ...batch, texts }, problems, options)) return;
  }
}

function describeMissing(field: string, found: unknown, metadata: JsonObject): string {
  if (found !== undefined) return `expected a text in ${field}, found ${show(found)}`;
  const names = Object.keys(metadata).join(', ') || 'none';
  return `expected a text in ${field}, found no such field; the fields of this row are ${names}`;
}
