// A collection from disk: its segment files, the deletions in them, then the log from the
// checkpoint on. What a write did when it happened, its record does again here.

import { SagittaError } from '../../common/errors.js';
import { decodeDeletions } from '../../segment/deletions.js';
import { decodeLogRecord } from '../../segment/log-record.js';
import type { Segment } from '../../segment/segment.js';
import { decodeSegment, verifySegmentTask } from '../../segment/segment-file.js';
import type { CatalogueOptions, LoadProgress } from '../catalogue.js';
import { keys, logName, segmentBlobName } from '../keys.js';
import { Collection } from './collection.js';
import { Maintenance } from './maintenance.js';
import {
  type CollectionDefinition,
  decodeJson,
  EMPTY_MANIFEST,
  type Manifest,
  type ManifestSegment,
} from './manifest.js';
import { Rows } from './rows.js';
import { applyLogRecord } from './writes.js';

/** Throws `data_corrupt` naming what is damaged. */
export async function loadCollection(
  definition: CollectionDefinition,
  options: CatalogueOptions,
  progress: LoadProgress = { segmentCount: 0, loadedSegmentCount: 0 },
): Promise<{ collection: Collection; maintenance: Maintenance }> {
  const { store, clock, limits, encoder } = options;
  const { incarnation, dimension } = definition;
  const segmentRowsMax = Math.min(
    limits.segmentRowsMax,
    Math.ceil(limits.segmentValueBytesMax / (4 * dimension)),
  );
  const rows = new Rows({
    incarnation,
    dimension,
    segmentRowsMax,
    metadataColumnsMax: limits.metadataColumnsMax,
    encoder,
  });
  const manifest = readManifest(definition, options);
  rows.reserveSegmentNumbers(manifest.nextSegmentNumber);
  await removeUnnamedBlobs(incarnation, manifest, options);
  progress.segmentCount = manifest.segments.length;
  for (const entry of manifest.segments) {
    const segment = await loadSegment(definition, entry, rows.segmentKey(entry.number), options);
    await segment.encode(encoder);
    rows.adopt(segment);
    progress.loadedSegmentCount++;
  }
  const replayed = await replayLog(definition, manifest, rows, options);

  const collection: Collection = new Collection({
    definition,
    rows,
    store,
    clock,
    retentionMs: limits.retentionMs,
    queuedWritesMax: limits.queuedWritesMax,
    sequence: replayed.sequence,
    horizonSequence: manifest.horizonSequence,
    writtenAtMs: replayed.writtenAtMs,
    onCommitted: () => maintenance.notice(),
    observer: options.observer,
  });
  const maintenance = new Maintenance({
    ...options,
    collection,
    manifest,
    segmentRowsMax,
    metadataColumnsMax: limits.metadataColumnsMax,
    retentionMs: limits.retentionMs,
  });
  maintenance.notice();
  return { collection, maintenance };
}

function readManifest(definition: CollectionDefinition, { store }: CatalogueOptions): Manifest {
  const bytes = store.get(keys.manifest(definition.incarnation));
  if (bytes === undefined) return EMPTY_MANIFEST;
  return decodeJson<Manifest>(bytes, `The manifest of collection "${definition.id}"`);
}

/** Files of a checkpoint or compaction that did not come to its commit. */
async function removeUnnamedBlobs(
  incarnation: string,
  manifest: Manifest,
  { store }: CatalogueOptions,
): Promise<void> {
  const named = new Set(
    manifest.segments.map(({ number }) => segmentBlobName(incarnation, number)),
  );
  for (const name of await store.listBlobs(`${incarnation}/`)) {
    if (!named.has(name)) await store.removeBlob(name);
  }
}

async function loadSegment(
  definition: CollectionDefinition,
  entry: ManifestSegment,
  key: string,
  { store, pool }: CatalogueOptions,
): Promise<Segment> {
  const name = segmentBlobName(definition.incarnation, entry.number);
  try {
    const bytes = await store.readBlob(name);
    if (bytes === undefined) throw new SagittaError('data_corrupt', 'the file is missing');
    if (bytes.byteLength !== entry.byteLength) {
      throw new SagittaError(
        'data_corrupt',
        `it has ${bytes.byteLength} bytes, expected ${entry.byteLength}`,
      );
    }
    await pool.run(verifySegmentTask, { bytes, checksum: entry.checksum });
    const segment = decodeSegment(bytes, { key, number: entry.number });
    for (const { value } of store.list(
      keys.deletionsOfSegment(definition.incarnation, entry.number),
    )) {
      const { rows, sequences } = decodeDeletions(value);
      for (let i = 0; i < rows.length; i++) segment.markDeleted(rows[i]!, sequences[i]!);
    }
    return segment;
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    throw new SagittaError('data_corrupt', `Segment file ${name} is damaged: ${error.message}`, {
      cause: error,
    });
  }
}

/** Log records applied between two turns of the event loop. */
const REPLAY_TURN_MS = 50;

async function replayLog(
  definition: CollectionDefinition,
  manifest: Manifest,
  rows: Rows,
  { store }: CatalogueOptions,
): Promise<{ sequence: number; writtenAtMs: number }> {
  let sequence = manifest.checkpointSequence;
  let writtenAtMs = manifest.writtenAtMs;
  let turnEndsAt = performance.now() + REPLAY_TURN_MS;
  for (const entry of store.readLog(logName(definition.incarnation), sequence)) {
    if (entry.sequence !== sequence + 1) {
      throw new SagittaError(
        'data_corrupt',
        `The log of collection "${definition.id}" goes from sequence ${sequence} to ${entry.sequence}; records are missing.`,
      );
    }
    const record = decodeLogRecord(entry.record);
    const isPartlyInFiles = sequence === manifest.checkpointSequence;
    applyLogRecord(rows, record, entry.sequence, isPartlyInFiles ? manifest.partialRowCount : 0);
    sequence = entry.sequence;
    writtenAtMs = record.timeMs;
    if (performance.now() > turnEndsAt) {
      // Lets the probes answer while a long log is replayed.
      await new Promise((resolve) => setImmediate(resolve));
      turnEndsAt = performance.now() + REPLAY_TURN_MS;
    }
  }
  return { sequence, writtenAtMs };
}
