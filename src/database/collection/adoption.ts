// Uses the segment files of the owner of the log in place of those of a node that follows it. All nodes that hold a
// collection then have the same files, so that only the owner writes and compacts them, and any node can read them from
// where they are shared. Rows after the last shared file stay where they are, in memory and in the log.

import { assert } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { Turns } from '../../common/turns.js';
import type { RowEncoder } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import { compactSegmentsTask } from '../../segment/compaction.js';
import { Segment } from '../../segment/segment.js';
import { logName } from '../layout/keys.js';
import type { Manifest, ManifestSegment } from '../layout/manifest.js';
import type { Collection } from './collection.js';
import type { CollectionFiles } from './collection-files.js';
import {
  type Exchange,
  exchangesBetween,
  isBefore,
  RowMapping,
  type RowPosition,
  segmentsBefore,
} from './row-mapping.js';

/** The files of the owner of the log. */
export interface SharedFiles {
  readonly manifest: Manifest;
  /** Whether this node keeps all of the file at a place in the manifest. */
  readonly isWhole: (place: number) => boolean;
  /** Writes the file at a place to the store of this node, under a name. */
  readonly fetch: (place: number, name: string) => Promise<void>;
}

interface Adopter {
  readonly collection: Collection;
  readonly files: CollectionFiles;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly encoder: RowEncoder | null;
}

/** Segments with the same rows, and the files of the fresh ones. */
interface Exchanged {
  readonly old: readonly Segment[];
  readonly fresh: readonly Segment[];
  readonly entries: readonly ManifestSegment[];
  readonly mapping: RowMapping;
  /** Whether the old segment stays, with its indexes, and only switches to the arrays of the fresh one. */
  readonly isSame: boolean;
}

/**
 * Returns the segments that were replaced, whose files are no longer named; null if that must wait, because requests may
 * still read snapshots with rows that the shared files lack. Throws what fetching a file throws, and an error for files
 * with other rows. The caller keeps anything else from changing the files.
 */
export async function adoptFiles(
  shared: SharedFiles,
  adopter: Adopter,
): Promise<readonly Segment[] | null> {
  const { collection, files } = adopter;
  const { rows } = collection;
  const own = files.manifest;
  const end = endOf(shared.manifest);
  if (collection.isWritable)
    return replace(await changedForms(shared, adopter), shared.manifest, adopter);
  // The rows of the write at the end cannot be counted if some were removed.
  const isCountable = end.partialRowCount === 0 || own.horizonSequence <= end.sequence;
  // The shared files that a partial one stands for may be removed soon, so cursors cannot keep it.
  const isPartial = rows.segments.some((segment) => segment.isPartial);
  const since = isPartial ? collection.pinnedSince() : collection.retainedSince();
  const isReadable = since >= shared.manifest.horizonSequence;
  if (!isCountable || !isReadable) return null;
  const active = rows.segments.at(-1);
  if (active !== undefined && beginsBefore(active, end)) rows.sealActive();
  const { whole, cut } = segmentsBefore(rows.segments, end);
  const digests = usableDigests(shared, files);
  const local = [...whole, ...(cut === null ? [] : [cut.segment])].map((segment) => ({
    segment,
    digest: digests(segment),
  }));
  const exchanges = exchangesBetween(local, shared.manifest.segments);
  const exchanged: Exchanged[] = [];
  for (const exchange of exchanges) {
    const isCut = cut !== null && exchange.old.includes(cut.segment);
    const same = isCut ? null : await fetchSame(exchange, shared, adopter);
    if (same !== null) {
      exchanged.push(same);
      continue;
    }
    const { fresh, entries } = await fetchFiles(exchange, shared, adopter);
    if (isCut) {
      const rest = await rowsAfter(cut, adopter);
      fresh.push(rest);
      // Otherwise the log contains its rows.
      if (isBefore(end, endOf(own))) entries.push(await files.write(rest));
    }
    exchanged.push(await matched(exchange.old, fresh, entries, adopter));
  }
  return replace(exchanged, shared.manifest, adopter);
}

async function matched(
  old: readonly Segment[],
  fresh: readonly Segment[],
  entries: readonly ManifestSegment[],
  { files }: Adopter,
): Promise<Exchanged> {
  const { horizonSequence } = files.manifest;
  const mapping = await RowMapping.between(old, fresh, { horizonSequence, turns: new Turns() });
  return { old, fresh, entries, mapping, isSame: false };
}

/**
 * Fetches the file of a segment without one that has exactly its rows: the usual case, since nodes seal segments that are
 * full at the same row. Null if there is no such file.
 */
async function fetchSame(
  { old, files: [entry, ...others] }: Exchange,
  shared: SharedFiles,
  adopter: Adopter,
): Promise<Exchanged | null> {
  const { files } = adopter;
  const [segment] = old;
  const named = files.namedThrough(Number.POSITIVE_INFINITY);
  const isNamed = named.some(({ number }) => number === segment?.number);
  if (segment === undefined || entry === undefined || isNamed) return null;
  if (old.length + others.length > 1 || segment.rowCount !== entry.rowCount) return null;
  const { number } = segment;
  const fresh = await fetchFile(entry, number, shared, adopter);
  const found = await matched(old, [fresh], [{ ...entry, number }], adopter);
  const hasVectors = [...segment.vectorFields.keys()].every((name) => fresh.vectorFields.has(name));
  if (found.mapping.isIdentity && hasVectors) return { ...found, isSame: true };
  await files.remove(old);
  return null;
}

/** Returns the digest of the file of a segment; null if it has none, or the node should keep more or less of it. */
function usableDigests({ manifest, isWhole }: SharedFiles, files: CollectionFiles) {
  const named = files.namedThrough(Number.POSITIVE_INFINITY);
  const digests = new Map(named.map(({ number, digest }) => [number, digest]));
  const wholes = new Map(manifest.segments.map(({ digest }, place) => [digest, isWhole(place)]));
  return (segment: Segment) => {
    const digest = digests.get(segment.number) ?? null;
    return segment.isPartial === wholes.get(digest) ? null : digest;
  };
}

/** The segments of the owner of the log of which it should keep more or less: it has written the shared files itself. */
async function changedForms(shared: SharedFiles, adopter: Adopter): Promise<Exchanged[]> {
  const { collection, files } = adopter;
  const { segments } = files.manifest;
  const own = new Map(segments.map(({ number, digest }) => [digest, number]));
  const exchanged: Exchanged[] = [];
  for (const [place, entry] of shared.manifest.segments.entries()) {
    const number = own.get(entry.digest);
    const segment = collection.rows.segments.find((one) => one.number === number);
    if (segment === undefined || segment.isPartial !== shared.isWhole(place)) continue;
    const old = [segment];
    const { fresh, entries } = await fetchFiles({ old, files: [entry] }, shared, adopter);
    exchanged.push(await matched(old, fresh, entries, adopter));
  }
  return exchanged;
}

async function fetchFiles(exchange: Exchange, shared: SharedFiles, adopter: Adopter) {
  const fresh: Segment[] = [];
  const entries: ManifestSegment[] = [];
  for (const entry of exchange.files) {
    const number = adopter.collection.rows.takeSegmentNumber();
    fresh.push(await fetchFile(entry, number, shared, adopter));
    entries.push({ ...entry, number });
  }
  return { fresh, entries };
}

async function fetchFile(
  entry: ManifestSegment,
  number: number,
  { manifest, fetch }: SharedFiles,
  { collection: { rows }, files, encoder }: Adopter,
): Promise<Segment> {
  await fetch(manifest.segments.indexOf(entry), files.nameOf(number));
  const segment = await files.read({ ...entry, number }, rows.segmentKey(number));
  await segment.encode(encoder);
  segment.shareBases(rows.segments);
  return segment;
}

/** A segment with the rows from one on. */
async function rowsAfter(
  { segment, row }: { readonly segment: Segment; readonly row: number },
  { collection, limits, pool, encoder }: Adopter,
): Promise<Segment> {
  const { rows } = collection;
  const number = rows.takeSegmentNumber();
  const { data } = await pool.run(compactSegmentsTask, {
    inputs: [segment.toData()],
    horizonSequence: 0,
    firstRow: row,
    key: rows.segmentKey(number),
    number,
    rowsMax: limits.segmentRowsMax,
    columnsMax: limits.metadataColumnsMax,
  });
  collection.requireIntact([segment]);
  assert(data !== null, 'there are rows after the first ones');
  const rest = Segment.fromData(data);
  await rest.encode(encoder);
  return rest;
}

async function replace(
  exchanged: readonly Exchanged[],
  shared: Manifest,
  { collection, files }: Adopter,
): Promise<readonly Segment[]> {
  const { rows } = collection;
  const own = files.manifest;
  if (exchanged.length === 0 && !isBefore(endOf(own), endOf(shared))) return [];
  const newest = isBefore(endOf(own), endOf(shared)) ? shared : own;
  const { checkpointSequence, partialRowCount, writtenAtMs } = newest;
  const moved = exchanged.filter(({ isSame }) => !isSame);
  for (const { mapping } of moved) mapping.copyDeletions();
  const gone = new Set(moved.flatMap(({ old }) => old));
  const entriesAt = new Map(exchanged.map(({ old, entries }) => [old[0]!, entries]));
  const kept = new Map(
    files.namedThrough(checkpointSequence).map((entry) => [entry.number, entry]),
  );
  const stayed = rows.segments.filter((one) => kept.has(one.number) && !gone.has(one));
  const segments = rows.segments.flatMap((segment) => {
    const entry = gone.has(segment) ? undefined : kept.get(segment.number);
    return [...(entriesAt.get(segment) ?? []), ...(entry === undefined ? [] : [entry])];
  });
  const named = new Set(segments.map(({ number }) => number));
  const written = exchanged
    .flatMap(({ isSame, old, fresh }) => (isSame ? old : fresh))
    .filter(({ number }) => named.has(number));
  await files.commit(
    {
      ...own,
      checkpointSequence,
      partialRowCount,
      writtenAtMs,
      horizonSequence: Math.max(own.horizonSequence, shared.horizonSequence),
      nextSegmentNumber: rows.nextSegmentNumber,
      segments,
    },
    [
      ...files.withoutDeletions([...gone]),
      ...stayed.flatMap((one) => files.deletions(one, own.checkpointSequence, checkpointSequence)),
      ...written.flatMap((one) => files.deletions(one, 0, checkpointSequence)),
      { kind: 'trim', log: logName(collection.incarnation), throughSequence: checkpointSequence },
    ],
  );
  // Rows were deleted in the meantime. No await may come between here and the end of the loop.
  for (const { old, fresh, mapping, isSame } of exchanged) {
    if (isSame) {
      old[0]!.switchTo(fresh[0]!);
      continue;
    }
    mapping.copyDeletions();
    rows.replace(old, fresh);
  }
  collection.raiseHorizon(shared.horizonSequence);
  return [...gone];
}

/** Where the rows of the files end. */
function endOf({ checkpointSequence, partialRowCount }: Manifest): RowPosition {
  return { sequence: checkpointSequence, partialRowCount };
}

function beginsBefore(segment: Segment, { sequence, partialRowCount }: RowPosition): boolean {
  return segment.rowCountAt(partialRowCount > 0 ? sequence + 1 : sequence) > 0;
}
