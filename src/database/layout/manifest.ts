// The stored descriptions of a collection: its definition in the catalogue, and the manifest that names its
// segment files. Both are JSON with a format version.

import { SagittaError } from '../../common/errors.js';
import type { TextSettings } from '../../common/text-settings.js';
import type { DeclaredTypes, EmbeddingSource, FieldShapes } from '../../common/types.js';
import type { BlockRange } from '../../platform/blocks.js';
import type { Store } from '../../storage/store.js';
import { blobsOf, segmentBlobName } from './keys.js';

export const FORMAT_VERSION = 1;

export interface CollectionDefinition {
  readonly formatVersion: number;
  /** Random for each created collection, so that data of earlier collections with the same id is never found. */
  readonly incarnation: string;
  readonly id: string;
  readonly vectors: FieldShapes;
  /** See `VectorNameColumns`; absent, like `additionCount`, when no vector was added. */
  readonly columns?: Readonly<Record<string, string>> | undefined;
  readonly additionCount?: number | undefined;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Lifetime, from their write, of vectors without an expiry of their own; null for no limit. */
  readonly ttlSeconds: number | null;
  /** The declared types of metadata; null for none. */
  readonly schema: DeclaredTypes | null;
  /** Absent for a collection without a text index. */
  readonly text?: TextSettings | undefined;
  /** The service that turns texts into vectors; null for none. */
  readonly embed: EmbeddingSource | null;
  /** The number of nodes of a cluster that hold the collection; null for all. */
  readonly replicationFactor: number | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface ManifestSegment {
  readonly number: number;
  readonly rowCount: number;
  readonly byteLength: number;
  readonly checksum: string;
  /** By which nodes recognize equal files (blocks.ts); null where files are not shared. */
  readonly digest: string | null;
  /** The blocks of the file that are kept where its vectors are not. */
  readonly kept: readonly BlockRange[];
  /** See `Segment.homeKey`. */
  readonly homeKey: string;
  /** Where the file was shared before the log named it, perhaps for the source of a clone; null if it was written later. */
  readonly blob: string | null;
  /** The sequence of all rows, if it was not known yet when the file was written; null if the file contains sequences. */
  readonly sequence: number | null;
}

/** A file whose rows the write with its sequence adds, and that no manifest names yet. */
export interface AddedFile extends ManifestSegment {
  readonly formatVersion: number;
  readonly sequence: number;
}

/**
 * The segment files and the stored deletions contain the state at `checkpointSequence`, the log all later writes.
 * The files may also contain the first `partialRowCount` rows of the record after the checkpoint.
 */
export interface Manifest {
  readonly formatVersion: number;
  readonly checkpointSequence: number;
  readonly partialRowCount: number;
  /** Rows that ended at or before this sequence may have been removed, so older snapshots cannot be read. */
  readonly horizonSequence: number;
  readonly nextSegmentNumber: number;
  /** The time of the last write in the checkpoint. */
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

/** Throws `data_corrupt`. */
export function decodeDefinition(bytes: Uint8Array, id: string): CollectionDefinition {
  return decodeJson<CollectionDefinition>(bytes, `The catalogue's entry of collection "${id}"`);
}

export function encodeJson<T extends { readonly formatVersion: number }>(value: T): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** Throws `data_corrupt` for a value that this version cannot read; `what` names the value. */
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
      `${what} has format version ${value.formatVersion}; this version reads ${FORMAT_VERSION}. It was written by another version of Sagitta.`,
    );
  }
  return value;
}

/**
 * Removes the files that are not named, which a checkpoint or compaction left when it ended before its commit.
 * `blobNames` are all blobs of the incarnation; null lists them.
 */
export async function removeUnnamedBlobs(
  store: Store,
  incarnation: string,
  named: Iterable<Pick<ManifestSegment, 'number'>>,
  blobNames: readonly string[] | null = null,
): Promise<void> {
  const names = new Set(Array.from(named, ({ number }) => segmentBlobName(incarnation, number)));
  for (const name of blobNames ?? (await store.listBlobs(blobsOf(incarnation)))) {
    if (!names.has(name)) await store.removeBlob(name);
  }
}
