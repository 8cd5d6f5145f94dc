// One collection as it lies on disk: its manifest, its segment files one after another, the deletions
// in them, and the log from the checkpoint on. Goes on after whatever it finds.

import { DistinctIds } from '../../database/collection/distinct-ids.js';
import type {
  CollectionDefinition,
  Manifest,
  ManifestSegment,
} from '../../database/collection/manifest.js';
import { keys, segmentBlobName } from '../../database/keys.js';
import { decodeDeletions } from '../../segment/deletions.js';
import type { Segment } from '../../segment/segment.js';
import { decodeSegment, verifySegmentTask } from '../../segment/segment-file.js';
import type { StoreInspection } from '../../storage/store-inspection.js';
import { verifyLog } from './verify-log.js';
import { Findings, place, sentenceOf } from './verify-report.js';
import { checkRows } from './verify-rows.js';

export interface CollectionToVerify {
  readonly inspection: StoreInspection;
  readonly findings: Findings;
  readonly definition: CollectionDefinition;
  readonly manifest: Manifest;
  /** Told what was read, by bytes. */
  readonly onRead: (byteLength: number) => void;
}

export async function verifyCollection(collection: CollectionToVerify): Promise<void> {
  const { manifest, definition, findings } = collection;
  const ids = new DistinctIds();
  const partialSequence = manifest.checkpointSequence + 1;
  let lastSequence = 0;
  let partialRowCount = 0;
  let isWhole = true;
  for (const entry of manifest.segments) {
    const read = await readSegment(collection, entry);
    if (read === undefined) {
      isWhole = false;
      continue;
    }
    const { segment, deleted } = read;
    const where = segmentPlace(collection, entry);
    const { rowCount } = segment;
    const first = segment.insertedSequence(0);
    if (first < lastSequence) {
      findings.error(
        where,
        `its first sequence ${first} comes before ${lastSequence}, the last one of the file before it`,
      );
    }
    lastSequence = segment.insertedSequence(rowCount - 1);
    if (lastSequence > partialSequence) {
      findings.error(
        where,
        `its last sequence ${lastSequence} lies beyond the checkpoint ${manifest.checkpointSequence}`,
      );
    }
    const data = segment.toData();
    checkRows(
      { count: rowCount, ids: data.ids, values: data.values, metadata: data.json },
      definition,
      (what) => findings.error(where, what),
    );
    for (let row = 0; row < rowCount; row++) {
      // Rows of the write after the checkpoint end those before them only when the log is replayed.
      if (segment.insertedSequence(row) === partialSequence) partialRowCount++;
      else if (deleted[row] === Number.POSITIVE_INFINITY) ids.add(segment.idBytes(row));
    }
  }
  if (isWhole && partialRowCount !== manifest.partialRowCount) {
    findings.error(
      place(definition),
      `the segment files hold ${partialRowCount} rows of the write ${partialSequence}; the manifest says ${manifest.partialRowCount}`,
    );
  }
  await nameRepeated(collection, ids);
  verifyLog(collection);
}

function segmentPlace({ definition }: CollectionToVerify, { number }: ManifestSegment): string {
  return `${place(definition)}, segments/${segmentBlobName(definition.incarnation, number)}`;
}

/** The segment and, by row, the sequence that ended it; undefined when it cannot be had. */
async function readSegment(
  collection: CollectionToVerify,
  entry: ManifestSegment,
): Promise<{ segment: Segment; deleted: Float64Array } | undefined> {
  const { inspection, definition, findings, onRead } = collection;
  const { incarnation, dimension } = definition;
  const where = segmentPlace(collection, entry);
  const name = segmentBlobName(incarnation, entry.number);
  const byteLength = inspection.blobs.get(name);
  if (byteLength === undefined) {
    findings.error(where, 'the file is missing');
    return undefined;
  }
  findings.counts.segments++;
  if (byteLength !== entry.byteLength) {
    findings.error(where, `it has ${byteLength} bytes, expected ${entry.byteLength}`);
    return undefined;
  }
  let segment: Segment;
  try {
    const bytes = await inspection.readBlob(name);
    onRead(byteLength);
    verifySegmentTask.run({ bytes, checksum: entry.checksum });
    segment = decodeSegment(bytes, { key: name, number: entry.number, dimension });
  } catch (error) {
    findings.error(where, sentenceOf(error));
    return undefined;
  }
  findings.counts.rows += segment.rowCount;
  if (segment.rowCount !== entry.rowCount) {
    findings.error(where, `it has ${segment.rowCount} rows; the manifest says ${entry.rowCount}`);
  }
  if (segment.rowCount === 0) return undefined;
  return { segment, deleted: readDeletions(collection, entry, segment) };
}

function readDeletions(
  { inspection, definition, manifest, findings }: CollectionToVerify,
  entry: ManifestSegment,
  segment: Segment,
): Float64Array {
  const deleted = new Float64Array(segment.rowCount).fill(Number.POSITIVE_INFINITY);
  const prefix = keys.deletionsOfSegment(definition.incarnation, entry.number);
  for (const { key, value } of inspection.list(prefix)) {
    const where = `${place(definition)}, deletions of segment ${entry.number} through ${Number(key[3])}`;
    let rows: Uint32Array;
    let sequences: Float64Array;
    try {
      ({ rows, sequences } = decodeDeletions(value));
    } catch (error) {
      findings.error(where, sentenceOf(error));
      continue;
    }
    findings.counts.deletions += rows.length;
    for (const [i, row] of rows.entries()) {
      const sequence = sequences[i]!;
      if (row >= segment.rowCount) {
        findings.error(where, `row ${row} of ${segment.rowCount} does not exist`);
        continue;
      }
      const inserted = segment.insertedSequence(row);
      if (!(sequence > inserted && sequence <= manifest.checkpointSequence)) {
        findings.error(
          where,
          `row ${row}, inserted at ${inserted}, ends at ${sequence}; the checkpoint is ${manifest.checkpointSequence}`,
        );
      }
      const before = deleted[row]!;
      if (before !== Number.POSITIVE_INFINITY && before !== sequence) {
        findings.error(where, `row ${row} ends at ${sequence}, and ended at ${before} already`);
      }
      deleted[row] = sequence;
    }
  }
  return deleted;
}

/** Which rows have an id that lives twice: the files are read again, which hardly ever happens. */
async function nameRepeated(collection: CollectionToVerify, ids: DistinctIds): Promise<void> {
  const { manifest, definition, inspection, findings } = collection;
  const hashes = ids.repeated();
  if (hashes.size === 0) return;
  const placeById = new Map<string, string>();
  // What they hold was told of the first time.
  const again: CollectionToVerify = { ...collection, findings: new Findings(), onRead() {} };
  for (const entry of manifest.segments) {
    const name = segmentBlobName(definition.incarnation, entry.number);
    if (!inspection.blobs.has(name)) continue;
    const read = await readSegment(again, entry);
    if (read === undefined) continue;
    const { segment, deleted } = read;
    for (let row = 0; row < segment.rowCount; row++) {
      const isLive =
        deleted[row] === Number.POSITIVE_INFINITY &&
        segment.insertedSequence(row) <= manifest.checkpointSequence;
      if (!isLive || !hashes.has(ids.hashOf(segment.idBytes(row)))) continue;
      const id = Buffer.from(segment.idBytes(row)).toString('latin1');
      const first = placeById.get(id);
      if (first === undefined) placeById.set(id, `row ${row} of segment ${entry.number}`);
      else {
        findings.error(
          segmentPlace(collection, entry),
          `row ${row}: its id ${JSON.stringify(segment.id(row))} lives in ${first} as well`,
        );
      }
    }
  }
}
