// Verifies one collection on disk: its segment files one after another, their deletions, and the log from the
// checkpoint on. Continues after every finding.

import type { KeptParts } from '../../common/types.js';
import { keys, logName, segmentBlobName } from '../../database/layout/keys.js';
import type {
  AddedFile,
  CollectionDefinition,
  Manifest,
  ManifestSegment,
} from '../../database/layout/manifest.js';
import { addedFilesIn } from '../../database/layout/store-layout.js';
import { decodeLogRecord } from '../../segment/log-record.js';
import type { Segment } from '../../segment/segment.js';
import { decodeSegment, verifySegmentTask } from '../../segment/segment-file.js';
import { decodeDeletions } from '../../segment/stored-tables.js';
import type { StoreInspection } from '../../storage/store-inspection.js';
import { DistinctIds } from './distinct-ids.js';
import { collectionLabel, describeDamage, Findings } from './verify-report.js';
import { checkIds, checkRows } from './verify-rows.js';

export interface CollectionToVerify {
  readonly inspection: StoreInspection;
  readonly findings: Findings;
  readonly definition: CollectionDefinition;
  readonly manifest: Manifest;
  /** Called with the size of everything that was read. */
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
    const { segment, deleted, isPartial } = read;
    const where = segmentLabel(collection, entry);
    const { rowCount } = segment;
    const first = segment.insertedSequence(0);
    if (first < lastSequence) {
      findings.error(
        where,
        `first sequence ${first} is before ${lastSequence}, the last sequence of the previous file`,
      );
    }
    lastSequence = segment.insertedSequence(rowCount - 1);
    if (lastSequence > partialSequence) {
      findings.error(
        where,
        `last sequence ${lastSequence} is after the checkpoint ${manifest.checkpointSequence}`,
      );
    }
    checkSegment(collection, entry, { segment, isPartial });
    for (let row = 0; row < rowCount; row++) {
      // Rows of the write after the checkpoint replace earlier ones only when the log is replayed.
      if (segment.insertedSequence(row) === partialSequence) partialRowCount++;
      else if (deleted[row] === Number.POSITIVE_INFINITY) ids.add(segment.idBytes(row));
    }
  }
  if (isWhole && partialRowCount !== manifest.partialRowCount) {
    findings.error(
      collectionLabel(definition),
      `the segment files hold ${partialRowCount} rows of write ${partialSequence}; the manifest says ${manifest.partialRowCount}`,
    );
  }
  await reportRepeatedIds(collection, ids);
  const added = addedFilesIn(collection.inspection, definition.incarnation);
  for (const entry of added.values()) {
    const read = await readSegment(collection, entry);
    if (read !== undefined) checkSegment(collection, entry, read);
  }
  verifyLog(collection, added);
}

function checkSegment(
  collection: CollectionToVerify,
  entry: ManifestSegment,
  { segment, isPartial }: Pick<ReadSegment, 'segment' | 'isPartial'>,
): void {
  const { definition, findings } = collection;
  const { rowCount: count, ids, json, vectors } = segment.toData();
  const where = segmentLabel(collection, entry);
  const rows = { count, ids, metadata: json, vectors: isPartial ? null : vectors };
  checkRows(rows, definition, (what) => findings.error(where, what));
}

function segmentLabel({ definition }: CollectionToVerify, { number }: ManifestSegment): string {
  return `${collectionLabel(definition)}, segments/${segmentBlobName(definition.incarnation, number)}`;
}

interface ReadSegment {
  readonly segment: Segment;
  /** Per row, the sequence of its deletion, or infinity. */
  readonly deleted: Float64Array;
  /** Whether parts of the file are not on this disk, which are zeros in the segment. */
  readonly isPartial: boolean;
}

/** Returns undefined if the file is damaged or has no rows. */
async function readSegment(
  collection: CollectionToVerify,
  entry: ManifestSegment,
): Promise<ReadSegment | undefined> {
  const { inspection, definition, findings, onRead } = collection;
  const { incarnation } = definition;
  const where = segmentLabel(collection, entry);
  const name = segmentBlobName(incarnation, entry.number);
  const byteLength = inspection.blobs.get(name);
  if (byteLength === undefined) {
    findings.error(where, 'the file is missing');
    return undefined;
  }
  findings.counts.segments++;
  if (byteLength !== entry.byteLength) {
    findings.error(where, `has ${byteLength} bytes, expected ${entry.byteLength}`);
    return undefined;
  }
  let segment: Segment;
  let kept: KeptParts | null;
  try {
    const bytes = await inspection.readBlob(name);
    onRead(byteLength);
    kept = await inspection.keptParts(name);
    verifySegmentTask.run({ bytes, checksum: entry.checksum, kept });
    segment = decodeSegment(bytes, { key: name, number: entry.number });
    if (entry.sequence !== null) segment.insertAt(entry.sequence);
  } catch (error) {
    findings.error(where, describeDamage(error));
    return undefined;
  }
  findings.counts.rows += segment.rowCount;
  if (segment.rowCount !== entry.rowCount) {
    findings.error(where, `has ${segment.rowCount} rows; the manifest says ${entry.rowCount}`);
  }
  if (segment.rowCount === 0) return undefined;
  const deleted = readDeletions(collection, entry, segment);
  return { segment, deleted, isPartial: kept !== null };
}

function readDeletions(
  { inspection, definition, manifest, findings }: CollectionToVerify,
  entry: ManifestSegment,
  segment: Segment,
): Float64Array {
  const deleted = new Float64Array(segment.rowCount).fill(Number.POSITIVE_INFINITY);
  const prefix = keys.deletionsOfSegment(definition.incarnation, entry.number);
  for (const { key, value } of inspection.list(prefix)) {
    const where = `${collectionLabel(definition)}, deletions of segment ${entry.number} through ${Number(key[3])}`;
    let rows: Uint32Array;
    let sequences: Float64Array;
    try {
      ({ rows, sequences } = decodeDeletions(value));
    } catch (error) {
      findings.error(where, describeDamage(error));
      continue;
    }
    findings.counts.deletions += rows.length;
    for (const [i, row] of rows.entries()) {
      const sequence = sequences[i]!;
      if (row >= segment.rowCount) {
        findings.error(
          where,
          `row ${row} does not exist; the segment has ${segment.rowCount} rows`,
        );
        continue;
      }
      const inserted = segment.insertedSequence(row);
      if (!(sequence > inserted && sequence <= manifest.checkpointSequence)) {
        findings.error(
          where,
          `row ${row}, inserted at ${inserted}, is deleted at ${sequence}; the checkpoint is ${manifest.checkpointSequence}`,
        );
      }
      const before = deleted[row]!;
      if (before !== Number.POSITIVE_INFINITY && before !== sequence) {
        findings.error(where, `row ${row} is deleted at ${sequence}, and also at ${before}`);
      }
      deleted[row] = sequence;
    }
  }
  return deleted;
}

/** Reports rows that share an id with another live row. The files are read again, which is rarely needed. */
async function reportRepeatedIds(collection: CollectionToVerify, ids: DistinctIds): Promise<void> {
  const { manifest, definition, inspection, findings } = collection;
  const hashes = ids.repeated();
  if (hashes.size === 0) return;
  const firstById = new Map<string, string>();
  // All other findings in the files were reported the first time.
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
      const first = firstById.get(id);
      if (first === undefined) firstById.set(id, `row ${row} of segment ${entry.number}`);
      else {
        findings.error(
          segmentLabel(collection, entry),
          `row ${row}: id ${JSON.stringify(segment.id(row))} is also live in ${first}`,
        );
      }
    }
  }
}

/** Checks the log from the checkpoint on: no record is missing, each is intact, and its rows are valid. */
function verifyLog(
  { inspection, definition, manifest, findings, onRead }: CollectionToVerify,
  added: ReadonlyMap<number, AddedFile>,
): void {
  const log = logName(definition.incarnation);
  const { checkpointSequence, partialRowCount } = manifest;
  const trimmedThrough = inspection.logs.get(log)?.trimmedThrough ?? 0;
  const where = `${collectionLabel(definition)}, log`;
  if (trimmedThrough > checkpointSequence) {
    findings.error(
      where,
      `is trimmed through ${trimmedThrough}, but the segment files end at ${checkpointSequence}`,
    );
  }
  let sequence = checkpointSequence;
  for (const entry of inspection.readLog(log, checkpointSequence)) {
    if (entry.sequence !== sequence + 1) {
      findings.error(
        where,
        `records are missing: sequence ${sequence} is followed by ${entry.sequence}`,
      );
    }
    sequence = entry.sequence;
    findings.counts.logRecords++;
    const report = (what: string) => findings.error(where, `record ${sequence}: ${what}`);
    // Damaged records were already reported when the journal was read.
    if (entry.record === undefined) continue;
    onRead(entry.record.byteLength);
    const rowsInFiles = sequence === checkpointSequence + 1 ? partialRowCount : 0;
    const rowCount = verifyRecord(entry.record, definition, added.get(sequence), report);
    if (rowCount === undefined) continue;
    findings.counts.rows += Math.max(0, rowCount - rowsInFiles);
    if (rowCount < rowsInFiles) {
      report(`writes ${rowCount} rows, but the segment files hold ${rowsInFiles} of them`);
    }
  }
  if (partialRowCount > 0 && sequence === checkpointSequence) {
    findings.error(
      where,
      `write ${sequence + 1} is missing, but the segment files hold ${partialRowCount} of its rows`,
    );
  }
}

/** Returns the number of rows that the record contains; undefined if it cannot be read. */
function verifyRecord(
  bytes: Uint8Array,
  definition: CollectionDefinition,
  added: AddedFile | undefined,
  report: (what: string) => void,
): number | undefined {
  try {
    const record = decodeLogRecord(bytes);
    if (record.kind === 'deleteAll') return 0;
    if (record.kind === 'delete') {
      checkIds(record.ids, record.count, report);
      return 0;
    }
    if (record.kind === 'file') {
      const { blob } = record.file;
      if (added?.blob !== blob) report(`adds the file ${blob}, which is not in the directory`);
      return 0;
    }
    const { count, ids } = record.batch;
    checkRows(record.batch, definition, report);
    const seen = new Set<string>();
    for (let row = 0; row < count; row++) {
      const id = Buffer.from(ids.bytes.subarray(ids.offsets[row]!, ids.offsets[row + 1]!));
      seen.add(id.toString('latin1'));
    }
    if (seen.size < count) report(`writes ${count} rows with ${seen.size} distinct ids`);
    return count;
  } catch (error) {
    report(describeDamage(error));
    return undefined;
  }
}
