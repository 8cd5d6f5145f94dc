// All rows of a collection, or those that pass a filter, as columns: one snapshot in order of
// arrival, read piece by piece for as long as its reader likes.

import type { JsonObject } from '../../common/types.js';
import { parseFilter } from '../../filter/parse.js';
import type { Collection } from '../collection/collection.js';
import { countVisible } from '../collection/snapshot.js';
import type { DatabaseServices } from '../database-services.js';
import { type RowChunk, rowChunks } from './row-chunks.js';

/**
 * Long enough that what is done once a piece does not count, short enough that a reader who stops
 * holds little.
 */
const PIECE_BYTES = 4 * 1024 * 1024;

/** Of rows that are all but empty. */
const PIECE_ROWS_MAX = 16_384;

export interface ScanRequest {
  readonly filter?: JsonObject | undefined;
  readonly includeValues: boolean;
  readonly includeMetadata: boolean;
  /** Of all columns of a piece together; absent: 4 MiB. */
  readonly chunkBytesMax?: number | undefined;
}

export interface Scan {
  readonly sequence: number;
  readonly dimension: number;
  readonly rowCount: number;
  /** In order of arrival, none of them empty. */
  chunks(): Iterable<RowChunk>;
}

/** Throws `invalid_filter`. */
export async function runScan(
  collection: Collection,
  request: ScanRequest,
  { filters, limits, scanStats }: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<Scan> {
  const filter = request.filter === undefined ? null : parseFilter(request.filter, limits);
  const snapshot = collection.snapshot();
  const parts = await filters.filter(snapshot.views, filter, signal);
  const rowCount = countVisible(parts);
  const options = {
    values: request.includeValues,
    metadata: request.includeMetadata,
    bytesMax: request.chunkBytesMax ?? PIECE_BYTES,
    rowsMax: PIECE_ROWS_MAX,
  };
  return {
    sequence: snapshot.sequence,
    dimension: collection.definition.dimension,
    rowCount,
    chunks: () => scanStats.countScan(rowChunks(parts, options), rowCount),
  };
}
