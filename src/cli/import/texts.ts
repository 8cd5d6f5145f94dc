// Rows whose vectors are made of a text by the server.

import type { JsonObject } from '../../common/types.js';
import { ReadError, RowError, show } from '../../readers/read-error.js';
import type { RowBatch } from '../../readers/row-batch.js';

/**
 * The number of texts in one write. The built-in model takes a second or two for them, after which they are durable and
 * counted as progress.
 */
export const EMBED_ROWS_MAX = 256;

export function rowsPerWrite({
  batch,
  embed,
}: {
  readonly batch: number;
  readonly embed?: string | undefined;
}): number {
  return embed === undefined ? batch : Math.min(batch, EMBED_ROWS_MAX);
}

/**
 * The batch with the texts of a metadata field. Throws RowError for a row without one, and ReadError for rows that have
 * vectors.
 */
export function withTexts(batch: RowBatch, field: string | undefined): RowBatch {
  if (field === undefined) return batch;
  if (batch.dimension > 0) {
    throw new ReadError(
      `${batch.location(0)}: found a vector beside the text of --embed; leave out one of them`,
      { isUsage: true },
    );
  }
  const texts = Array.from({ length: batch.rowCount }, (_, row) => {
    const metadata = JSON.parse(batch.metadata?.[row] ?? '{}') as JsonObject;
    const text = Object.hasOwn(metadata, field) ? metadata[field] : undefined;
    if (typeof text === 'string' && text.trim() !== '') return text;
    const found = text === undefined ? 'no such field' : show(text);
    const hint =
      text === undefined
        ? `; the fields of this row are ${Object.keys(metadata).join(', ') || 'none'}`
        : '';
    throw new RowError(
      batch.location(row),
      `expected a text in ${field}, which --embed names, found ${found}${hint}`,
    );
  });
  return { ...batch, texts };
}
