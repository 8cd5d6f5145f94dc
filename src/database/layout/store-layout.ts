// Which entries of a store belong to the log of the catalogue and which to the log of a collection. A cluster copies
// them from node to node.

import type { StateReader, StoreKey } from '../../storage/store.js';
import { keys, segmentBlobName, storedParts } from './keys.js';
import { decodeJson, EMPTY_MANIFEST, type Manifest, type ManifestSegment } from './manifest.js';

export interface SegmentBlob extends Pick<ManifestSegment, 'digest' | 'kept' | 'firstSequence'> {
  readonly name: string;
  /** Changes with the bytes. */
  readonly version: string;
}

export const storeLayout = {
  /** Prefixes of the entries that belong to the catalogue. */
  catalogue: [keys.collections, keys.aliases, keys.apiKeys, keys.cursorSecret],
  /** An entry that is unique to each service or cluster. */
  secret: keys.cursorSecret,
  collection: storedParts,
  /** The blobs that the entries of a collection name, and what describes them. Throws `data_corrupt`. */
  filesOf(
    reader: Pick<StateReader, 'get'>,
    incarnation: string,
  ): { readonly description: Manifest; readonly blobs: readonly SegmentBlob[] } {
    const bytes = reader.get(keys.manifest(incarnation));
    if (bytes === undefined) return { description: EMPTY_MANIFEST, blobs: [] };
    const what = `The manifest of incarnation ${incarnation}`;
    const description = decodeJson<Manifest>(bytes, what);
    const blobs = description.segments.map(({ number, checksum, digest, kept, firstSequence }) => ({
      name: segmentBlobName(incarnation, number),
      version: checksum,
      digest,
      kept,
      firstSequence,
    }));
    return { description, blobs };
  },
  /**
   * Replies under idempotency keys are committed to all logs. The value of an entry under `prefix` is free for the name
   * of the log; `entryOf` gives the key of the reply that belongs to the entry.
   */
  replies: {
    prefix: keys.idempotentExpiries,
    entryOf: (key: StoreKey): StoreKey => keys.idempotentReply(key.at(-1)!),
  },
} as const;
