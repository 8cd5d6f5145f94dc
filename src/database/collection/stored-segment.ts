// Reads the file of a segment from the store.

import { SagittaError } from '../../common/errors.js';
import type { KeptParts } from '../../common/types.js';
import type { Segment } from '../../segment/segment.js';
import { decodeSegment } from '../../segment/segment-file.js';
import type { Store } from '../../storage/store.js';
import type { ManifestSegment } from '../layout/manifest.js';

export interface StoredSegment {
  readonly segment: Segment;
  readonly bytes: Uint8Array;
  /** The parts that are on this disk; null for all. */
  readonly kept: KeptParts | null;
}

/** The segment in a file, without deletions. `key` becomes that of the segment. Throws `data_corrupt`. */
export async function readStoredSegment(
  store: Store,
  name: string,
  entry: Pick<ManifestSegment, 'number' | 'byteLength' | 'homeKey' | 'sequence'>,
  key: string,
): Promise<StoredSegment> {
  const mapping = await store.mapBlob(name);
  const bytes = mapping?.bytes ?? (await store.readBlob(name));
  if (bytes === undefined) throw new SagittaError('data_corrupt', 'The file is missing.');
  const { number, byteLength, homeKey, sequence } = entry;
  if (bytes.byteLength !== byteLength) {
    const detail = `It has ${bytes.byteLength} bytes, expected ${byteLength}.`;
    throw new SagittaError('data_corrupt', detail);
  }
  const segment = decodeSegment(bytes, { key, number }, mapping);
  segment.homeKey = homeKey;
  if (sequence !== null) segment.insertAt(sequence);
  return { segment, bytes, kept: mapping?.kept ?? null };
}
