// Which entries of a store belong to the log of the catalogue and which to the log of a collection. A cluster copies
// them from node to node.

import { decodeLogRecord, isFileRecord, type SharedSegment } from '../../segment/log-record.js';
import type { StateReader, StoreKey, StoreOperation } from '../../storage/store.js';
import { keys, logName, segmentBlobName, storedParts } from './keys.js';
import {
  type AddedFile,
  decodeJson,
  EMPTY_MANIFEST,
  encodeJson,
  FORMAT_VERSION,
  type Manifest,
  type ManifestSegment,
} from './manifest.js';

interface SegmentBlob
  extends Pick<ManifestSegment, 'byteLength' | 'digest' | 'kept' | 'homeKey' | 'blob'> {
  readonly name: string;
  /** Changes with the bytes. */
  readonly version: string;
}

/** A file that a record adds. */
interface FileToAdd {
  readonly file: SharedSegment;
  /** The name that its blob must get in the store. */
  readonly name: string;
  /** Names the blob in the store, in the transaction of the record or before it. */
  readonly operation: StoreOperation;
}

/** The entry of a file that a write adds. */
export function addedFileOperation(
  incarnation: string,
  { blob, rowCount, byteLength, checksum, digest, kept, homeKey }: SharedSegment,
  { number, sequence }: { readonly number: number; readonly sequence: number },
): { readonly entry: AddedFile; readonly operation: StoreOperation } {
  const entry: AddedFile = {
    ...{ formatVersion: FORMAT_VERSION, number, sequence },
    ...{ blob, rowCount, byteLength, checksum, digest, kept, homeKey },
  };
  const key = keys.addedFile(incarnation, sequence);
  return { entry, operation: { kind: 'put', key, value: encodeJson(entry) } };
}

/** The files that writes after the checkpoint have added, by sequence. Throws `data_corrupt`. */
export function addedFilesIn(
  reader: Pick<StateReader, 'list'>,
  incarnation: string,
): Map<number, AddedFile> {
  const found = new Map<number, AddedFile>();
  for (const { key, value } of reader.list(keys.addedFiles(incarnation))) {
    const what = `The entry of the file that write ${Number(key[2])} of incarnation ${incarnation} adds`;
    found.set(Number(key[2]), decodeJson<AddedFile>(value, what));
  }
  return found;
}

function manifestIn(reader: Pick<StateReader, 'get'>, incarnation: string): Manifest {
  const bytes = reader.get(keys.manifest(incarnation));
  if (bytes === undefined) return EMPTY_MANIFEST;
  return decodeJson<Manifest>(bytes, `The manifest of incarnation ${incarnation}`);
}

export const storeLayout = {
  /** Prefixes of the entries that belong to the catalogue. */
  catalogue: [keys.collections, keys.aliases, keys.apiKeys, keys.cursorSecret],
  /** An entry that is unique to each service or cluster. */
  secret: keys.cursorSecret,
  collection: storedParts,
  /** The blobs that the entries of a collection name, and what describes them. Throws `data_corrupt`. */
  filesOf(
    reader: Pick<StateReader, 'get' | 'list'>,
    incarnation: string,
  ): { readonly description: Manifest; readonly blobs: readonly SegmentBlob[] } {
    const description = manifestIn(reader, incarnation);
    const added = addedFilesIn(reader, incarnation).values();
    const blobs = [...description.segments, ...added].map(
      ({ number, byteLength, checksum, digest, kept, homeKey, blob }) => ({
        name: segmentBlobName(incarnation, number),
        version: checksum,
        byteLength,
        digest,
        kept,
        homeKey,
        blob,
      }),
    );
    return { description, blobs };
  },
  /**
   * The files that records among the operations add to a collection which is not loaded. Throws `data_corrupt`.
   */
  filesAddedBy(
    operations: readonly StoreOperation[],
    reader: Pick<StateReader, 'get' | 'list'>,
    incarnation: string,
  ): FileToAdd[] {
    const log = logName(incarnation);
    let number: number | null = null;
    const found: FileToAdd[] = [];
    for (const operation of operations) {
      const isFile =
        operation.kind === 'append' && operation.log === log && isFileRecord(operation.record);
      if (!isFile) continue;
      const record = decodeLogRecord(operation.record);
      if (record.kind !== 'file') continue;
      number ??= nextNumberIn(reader, incarnation);
      const { sequence } = operation;
      const { file } = record;
      const added = addedFileOperation(incarnation, file, { number, sequence });
      found.push({
        file,
        name: segmentBlobName(incarnation, number),
        operation: added.operation,
      });
      number++;
    }
    return found;
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

/** A segment number that neither the manifest nor an added file has. */
function nextNumberIn(reader: Pick<StateReader, 'get' | 'list'>, incarnation: string): number {
  const added = addedFilesIn(reader, incarnation).values();
  const numbers = Array.from(added, ({ number }) => number + 1);
  return Math.max(manifestIn(reader, incarnation).nextSegmentNumber, ...numbers);
}
