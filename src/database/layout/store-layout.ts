// Where a store has what was committed to which log: to that of the catalogue, and to that of each collection. A
// cluster copies it from node to node.

import type { StateReader, StoreKey } from '../../storage/store.js';
import { keys, segmentBlobName, storedParts } from './keys.js';
import { decodeJson, type Manifest } from './manifest.js';

/** A blob, and a text that is another one for other bytes under the name. */
export interface NamedBlob {
  readonly name: string;
  readonly version: string;
}

export const storeLayout = {
  /** Prefixes of the entries of the catalogue. */
  catalogue: [keys.collections, keys.aliases, keys.apiKeys, keys.cursorSecret],
  /** An entry of the catalogue that tells one service, or cluster, from another one. */
  secret: keys.cursorSecret,
  collection: storedParts,
  /** The blobs that the entries of a collection name. Throws `data_corrupt`. */
  blobsOf(reader: Pick<StateReader, 'get'>, incarnation: string): NamedBlob[] {
    const bytes = reader.get(keys.manifest(incarnation));
    if (bytes === undefined) return [];
    const { segments } = decodeJson<Manifest>(bytes, `The manifest of incarnation ${incarnation}`);
    return segments.map(({ number, checksum }) => ({
      name: segmentBlobName(incarnation, number),
      version: checksum,
    }));
  },
  /**
   * Replies under idempotency keys come through all logs. The value of an entry under `prefix` has room for the name
   * of the log; `entryOf` is the key of the reply that belongs to it.
   */
  replies: {
    prefix: keys.idempotentExpiries,
    entryOf: (key: StoreKey): StoreKey => keys.idempotentReply(key.at(-1)!),
  },
} as const;
