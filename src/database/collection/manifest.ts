// What is on disk for a collection: its definition in the catalogue, and the manifest that names
// its segment files. Both are JSON in the store, with a format version.

import { SagittaError } from '../../common/errors.js';
import type { Metric } from '../../common/types.js';

export const FORMAT_VERSION = 1;

export interface CollectionDefinition {
  readonly formatVersion: number;
  /** Made anew with each creation: what belongs to the id's earlier collections is never found. */
  readonly incarnation: string;
  readonly id: string;
  readonly dimension: number;
  readonly metric: Metric;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface ManifestSegment {
  readonly number: number;
  readonly rowCount: number;
  readonly byteLength: number;
  readonly checksum: string;
}

/**
 * The state of the collection after `checkpointSequence` is what the segment files and the stored
 * deletions hold; the log has the rest. The record after the checkpoint may be partly in the files
 * already: its first `partialRowCount` rows are.
 */
export interface Manifest {
  readonly formatVersion: number;
  readonly checkpointSequence: number;
  readonly partialRowCount: number;
  /** Rows that ended at or before this sequence may be gone; no older snapshot can be read. */
  readonly horizonSequence: number;
  readonly nextSegmentNumber: number;
  /** When the last write of the checkpoint happened. */
  readonly writtenAtMs: number;
  /** In order of arrival. */
  readonly segments: readonly ManifestSegment[];
}

export const EMPTY_MANIFEST: Manifest = {
  formatVersion: FORMAT_VERSION,
  checkpointSequence: 0,
  partialRowCount: 0,
  horizonSequence: 0,
  nextSegmentNumber: 1,
  writtenAtMs: 0,
  segments: [],
};

export function encodeJson(value: CollectionDefinition | Manifest): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** Throws `data_corrupt` for a format that this version does not know; `what` names the value. */
export function decodeJson<T extends { readonly formatVersion: number }>(
  bytes: Uint8Array,
  what: string,
): T {
  let value: T;
  try {
    value = JSON.parse(Buffer.from(bytes).toString()) as T;
  } catch (cause) {
    throw new SagittaError('data_corrupt', `${what} is not valid JSON.`, { cause });
  }
  if (value.formatVersion !== FORMAT_VERSION) {
    throw new SagittaError(
      'data_corrupt',
      `${what} has format version ${value.formatVersion}; this version reads ${FORMAT_VERSION}. A newer Sagitta wrote it.`,
    );
  }
  return value;
}
