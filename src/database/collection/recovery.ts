// Loads a collection from disk: its segment files, their deletions, and the log after the checkpoint. Log records
// are applied by the same code as when they were written.

import { SagittaError } from '../../common/errors.js';
import { Turns } from '../../common/turns.js';
import { decodeLogRecord, type LogRecord } from '../../segment/log-record.js';
import type { Segment } from '../../segment/segment.js';
import { decodeDeletions } from '../../segment/stored-tables.js';
import type { CommitLogs } from '../../storage/commit-log.js';
import type { Store } from '../../storage/store.js';
import { keys, logName, segmentBlobName } from '../layout/keys.js';
import {
  type AddedFile,
  type CollectionDefinition,
  decodeJson,
  EMPTY_MANIFEST,
  type Manifest,
  type ManifestSegment,
  removeUnnamedBlobs,
} from '../layout/manifest.js';
import { addedFilesIn } from '../layout/store-layout.js';
import { AddedFiles } from './added-files.js';
import { Collection } from './collection.js';
import { Expiries } from './expiries.js';
import {
  damagedSegmentFile,
  FileGuard,
  type LoadedFile,
  type VerificationQueue,
} from './file-guard.js';
import { type CollectionServices, Maintenance } from './maintenance.js';
import { Rows } from './rows.js';
import { readStoredSegment } from './stored-segment.js';
import { namesOfColumns } from './vector-changes.js';
import { applyLogRecord } from './writes.js';

export interface LoadOptions extends CollectionServices {
  readonly logs: CommitLogs;
  readonly verifications: VerificationQueue;
  /** Aborts loading with the error `stopping`. */
  readonly stopping: AbortSignal;
}

/** The progress of loading a collection; updated in place. */
export interface LoadProgress {
  segmentCount: number;
  loadedSegmentCount: number;
}

/**
 * Throws `data_corrupt` naming what is damaged, `collection_unavailable` if parts of a file cannot be fetched, and
 * `stopping`. Checksums are verified later: `onDamaged` is called
 * with the error if a checksum is wrong or a file cannot be read.
 */
export async function loadCollection(
  definition: CollectionDefinition,
  options: LoadOptions & {
    readonly onDamaged: (error: SagittaError) => void;
    /** Changes whenever the files of the collection may have been replaced by others with the same names. */
    readonly generation: number;
    /** The blobs of the collection; null lists them. */
    readonly blobNames: readonly string[] | null;
  },
  progress: LoadProgress = { segmentCount: 0, loadedSegmentCount: 0 },
): Promise<{ collection: Collection; maintenance: Maintenance }> {
  const { store, encoder, onDamaged } = options;
  const { incarnation } = definition;
  const rows = new Rows({ ...options, incarnation, vectors: namesOfColumns(definition) });
  const guard = new FileGuard({ queue: options.verifications, onDamaged });
  const manifest = readManifest(definition, options);
  const added = addedFilesIn(store, incarnation);
  const files = [...manifest.segments, ...added.values()];
  rows.reserveSegmentNumbers(manifest.nextSegmentNumber);
  for (const { number } of files) rows.reserveSegmentNumbers(number + 1);
  await removeUnnamedBlobs(store, incarnation, files, options.blobNames);
  progress.segmentCount = files.length;
  const load = async (entry: ManifestSegment) => {
    options.stopping.throwIfAborted();
    const file = await loadSegment(definition, entry, rows.segmentKey(entry.number), options);
    guard.add(file);
    await file.segment.encode(encoder);
    file.segment.shareBases(rows.segments);
    progress.loadedSegmentCount++;
    return file.segment;
  };
  for (const entry of manifest.segments) rows.adopt(await load(entry));
  const source = { definition, manifest, added, load };
  const { named, ...replayed } = await replayLog(source, rows, options);

  const expiries = new Expiries(incarnation, rows);
  expiries.load(store);
  const collection: Collection = new Collection({
    ...options,
    ...replayed,
    definition,
    rows,
    expiries,
    addedFiles: new AddedFiles({
      ...options,
      incarnation,
      rows,
      sharing: options.logs.files,
      named,
    }),
    guard,
    log: options.logs.ofCollection(incarnation),
    horizonSequence: manifest.horizonSequence,
    onCommitted: () => maintenance.startIfDue(),
    whenRoom: () => maintenance.whenRoom(),
  });
  const maintenance = new Maintenance({
    ...options,
    collection,
    manifest,
    areFilesShared: !options.logs.isAlone,
  });
  maintenance.startIfDue();
  return { collection, maintenance };
}

function readManifest(definition: CollectionDefinition, { store }: LoadOptions): Manifest {
  const bytes = store.get(keys.manifest(definition.incarnation));
  if (bytes === undefined) return EMPTY_MANIFEST;
  return decodeJson<Manifest>(bytes, `The manifest of collection "${definition.id}"`);
}

async function loadSegment(
  definition: CollectionDefinition,
  entry: ManifestSegment,
  key: string,
  { store }: LoadOptions,
): Promise<LoadedFile> {
  const { checksum } = entry;
  const name = segmentBlobName(definition.incarnation, entry.number);
  try {
    const { segment, bytes, kept } = await readStoredSegment(store, name, entry, key);
    for (const { value } of store.list(
      keys.deletionsOfSegment(definition.incarnation, entry.number),
    )) {
      const { rows, sequences } = decodeDeletions(value);
      for (let i = 0; i < rows.length; i++) segment.markDeleted(rows[i]!, sequences[i]!);
    }
    return { name, segment, bytes, checksum, kept };
  } catch (error) {
    if (!(error instanceof SagittaError) || error.code !== 'data_corrupt') throw error;
    throw new SagittaError('data_corrupt', damagedSegmentFile(name, error.message), {
      cause: error,
    });
  }
}

/** Bytes of records that are staged together, enough to occupy many pool threads. */
const REPLAYED_BYTES = 32 * 1024 * 1024;
/** Small records are applied before they outlive the young generation of the garbage collector. */
const REPLAYED_RECORDS = 1024;

interface ReplayedRecord {
  readonly record: LogRecord;
  readonly sequence: number;
  /** Rows that are already in files. */
  readonly skippedRowCount: number;
  /** The segment that a record of the kind `file` adds. */
  readonly segment: Segment | null;
}

interface ReplaySource {
  readonly definition: CollectionDefinition;
  readonly manifest: Manifest;
  /** The files that records may add, by sequence. */
  readonly added: ReadonlyMap<number, AddedFile>;
  readonly load: (entry: AddedFile) => Promise<Segment>;
}

interface Replayed {
  readonly sequence: number;
  readonly writtenAtMs: number;
  /** The files that records have added, by sequence. */
  readonly named: ReadonlyMap<number, AddedFile>;
}

async function replayLog(
  { definition, manifest, added, load }: ReplaySource,
  rows: Rows,
  { store, stopping }: LoadOptions,
): Promise<Replayed> {
  const named = new Map<number, AddedFile>();
  let sequence = manifest.checkpointSequence;
  let writtenAtMs = manifest.writtenAtMs;
  const turns = new Turns(stopping);
  let group: ReplayedRecord[] = [];
  let byteCount = 0;
  for (const entry of store.readLog(logName(definition.incarnation), sequence)) {
    if (entry.sequence !== sequence + 1) {
      throw new SagittaError(
        'data_corrupt',
        `The log of collection "${definition.id}" goes from sequence ${sequence} to ${entry.sequence}; records are missing.`,
      );
    }
    const record = withoutDropped(decodeLogRecord(entry.record), rows);
    const isPartlyInFiles = sequence === manifest.checkpointSequence;
    const skippedRowCount = isPartlyInFiles ? manifest.partialRowCount : 0;
    sequence = entry.sequence;
    writtenAtMs = record.timeMs;
    let segment: Segment | null = null;
    if (record.kind === 'file') {
      const file = requireAdded(definition, added.get(sequence), { record, sequence });
      segment = await load(file);
      named.set(sequence, file);
    }
    group.push({ record, sequence, skippedRowCount, segment });
    byteCount += entry.record.byteLength;
    if (byteCount >= REPLAYED_BYTES || group.length >= REPLAYED_RECORDS) {
      await applyRecords(rows, group, turns);
      group = [];
      byteCount = 0;
    }
    const nextTurn = turns.next();
    if (nextTurn !== undefined) await nextTurn;
  }
  await applyRecords(rows, group, turns);
  stopping.throwIfAborted();
  await removeStale(
    definition,
    [...added.values()].filter((file) => !named.has(file.sequence)),
    store,
  );
  return { sequence, writtenAtMs, named };
}

/** Throws `data_corrupt` unless the file is the one that the record names. */
function requireAdded(
  { id }: CollectionDefinition,
  found: AddedFile | undefined,
  { record: { file }, sequence }: { record: LogRecord & { kind: 'file' }; sequence: number },
): AddedFile {
  if (found?.blob === file.blob) return found;
  throw new SagittaError(
    'data_corrupt',
    `The log of collection "${id}" adds the file ${file.blob} at sequence ${sequence}; the data directory has ${found === undefined ? 'no file' : `another file (${found.blob})`} for it.`,
  );
}

/** Removes files whose records were never committed, or will be read again. */
async function removeStale(
  { incarnation }: CollectionDefinition,
  files: readonly AddedFile[],
  store: Store,
): Promise<void> {
  if (files.length === 0) return;
  await store.commit(
    files.map(({ sequence }) => ({ kind: 'remove', key: keys.addedFile(incarnation, sequence) })),
  );
  for (const { number } of files) await store.removeBlob(segmentBlobName(incarnation, number));
}

/** Removes dropped vectors before staging, because staged batches are applied unchanged. */
function withoutDropped(record: LogRecord, rows: Rows): LogRecord {
  if (record.kind !== 'write') return record;
  return { ...record, batch: rows.withoutDropped(record.batch) };
}

async function applyRecords(
  rows: Rows,
  records: readonly ReplayedRecord[],
  turns: Turns,
): Promise<void> {
  await rows.stage(
    records.flatMap(({ record, skippedRowCount }) =>
      record.kind === 'write' ? { batch: record.batch, from: skippedRowCount } : [],
    ),
  );
  for (const { record, sequence, skippedRowCount, segment } of records) {
    if (segment !== null) rows.applyFile(segment);
    else if (record.kind !== 'file') applyLogRecord(rows, record, sequence, skippedRowCount);
    const nextTurn = turns.next();
    if (nextTurn !== undefined) await nextTurn;
  }
}
