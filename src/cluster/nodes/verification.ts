// Verifies what the nodes of a cluster share: the chain of each log and the files that its records add, the chunks of its
// archive and whether they belong to the log, the files of snapshots and clones by their digests, and all signatures. Everything is read and nothing
// is changed. Of each log, the replica that answers is checked, as a reader would get it.

import type { Logger } from '../../common/logger.js';
import type { Store } from '../../storage/store.js';
import type { ChunkName } from '../archive/chunk.js';
import { LogArchive } from '../archive/log-archive.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { readFirstLink } from '../logs/chain-reader.js';
import { ChainedLog } from '../logs/chained-log.js';
import { byteCountOf, type LogLink, type LogRecord } from '../logs/collection-log.js';
import { decodeOperations } from '../logs/operations.js';
import { CATALOGUE } from '../logs/store-entries.js';
import type { SharedService } from '../service/shared-service.js';
import type { StoreLayout } from '../snapshots/log-state.js';
import { SnapshotFiles } from '../snapshots/snapshot-files.js';
import { hasOrigin, readSnapshotRecord } from '../snapshots/snapshot-record.js';

export interface VerifiedFiles {
  readonly kind: 'log' | 'archive' | 'snapshot' | 'origin';
  /** The name of the log or the snapshot. */
  readonly name: string;
  /** The number of records of a log, chunks of an archive, or files of the others. */
  readonly count: number;
  readonly byteCount: number;
  /** Null if nothing is damaged. */
  readonly problem: string | null;
}

/** Counted while reading, so that they also show where a problem was found. */
interface Counts {
  count: number;
  byteCount: number;
}

interface VerificationOptions {
  /** The store of this node, which knows the newest snapshots. */
  readonly store: Pick<Store, 'get' | 'list'>;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  readonly service: SharedService;
  /** The names of the logs. */
  readonly logs: readonly string[];
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** A log that delivers nothing for this long does not answer. */
const READ_MS_MAX = 30_000;

export async function verifyShared(options: VerificationOptions): Promise<VerifiedFiles[]> {
  const { store, blobs, logs, logger, signal } = options;
  const verified: VerifiedFiles[] = [];
  const verify = async (
    kind: VerifiedFiles['kind'],
    name: string,
    read: (counts: Counts) => Promise<void>,
  ) => {
    signal.throwIfAborted();
    const counts: Counts = { count: 0, byteCount: 0 };
    const problem = await read(counts).then(
      () => null,
      (error: unknown) => (error as Error).message,
    );
    signal.throwIfAborted();
    if (problem !== null || counts.count > 0) verified.push({ kind, name, ...counts, problem });
  };
  for (const name of logs) {
    const archive = new LogArchive(name, { blobs, logger });
    await verify('log', name, (counts) => verifyLog(archive, options, counts));
    await verify('archive', name, async (counts) => {
      await verifyArchive(archive, counts, signal);
      const chunks = await archive.list();
      await requireCurrent(
        blobs,
        chunks.map((chunk) => chunk.name),
      );
    });
    const files = new SnapshotFiles(blobs, name);
    await verify('snapshot', name, () => requireNewest(files, store, name));
    for (const snapshot of await files.list()) {
      // The state of a collection before its first record: of a clone, or from the founding.
      const kind = snapshot.position === 0 ? 'origin' : 'snapshot';
      await verify(kind, `${name}/${snapshot.name}`, async (counts) => {
        try {
          await files.verify(snapshot.name, (byteCount) => add(counts, byteCount));
          await requireCurrent(blobs, [files.indexOf(snapshot.name)]);
        } catch (error) {
          // The snapshot may have been removed since it was listed.
          const listed = await files.list();
          if (listed.some((other) => other.name === snapshot.name)) throw error;
        }
      });
    }
  }
  return verified;
}

/** Throws if the snapshot is gone with which a node would start that has nothing of the log. */
async function requireNewest(
  files: SnapshotFiles,
  store: Pick<Store, 'get'>,
  log: string,
): Promise<void> {
  const newest = readSnapshotRecord(store, log)?.name;
  const listed = await files.list();
  const isThere =
    newest === undefined
      ? listed.length > 0 || !hasOrigin(store, log)
      : listed.some(({ name }) => name === newest);
  // Another one may have been taken meanwhile.
  if (isThere || readSnapshotRecord(store, log)?.name !== newest) return;
  throw new Error(
    `Expected ${newest === undefined ? 'the snapshot with which the log begins' : `the shared file ${files.indexOf(newest)}`}; found none. Nodes that start empty need it until the log has its next snapshot.`,
  );
}

/** Throws for files that cannot be read once the earlier secret is removed. */
async function requireCurrent(blobs: SealedBlobs, names: readonly string[]): Promise<void> {
  if (!blobs.isChangingSecret) return;
  let count = 0;
  for (const name of names) if ((await blobs.sealOf(name)) === 'earlier') count++;
  if (count === 0) return;
  throw new Error(
    `Expected files that are signed with the first secret in SAGITTA_CLUSTER_SECRET; found ${count} signed with another one. Keep that one on all nodes until the owner of the log has signed them again, which takes up to ten minutes.`,
  );
}

function add(counts: Counts, byteCount: number): void {
  counts.count++;
  counts.byteCount += byteCount;
}

/**
 * Reads the records from the first one on, and the files that they add. Where the archive ends within the log, the two must
 * agree.
 */
async function verifyLog(
  archive: LogArchive,
  options: VerificationOptions,
  counts: Counts,
): Promise<void> {
  const { service, signal } = options;
  const stream = service.openStream(archive.name);
  const first = await readFirstLink(stream);
  const archived = await archive.end();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(tooLate()), READ_MS_MAX);
  let last = first;
  requireSame(first, archived);
  try {
    const inTime = { signal: AbortSignal.any([signal, late.signal]) };
    for await (const record of new ChainedLog(stream).readToEnd(first, inTime)) {
      timer.refresh();
      if (record.kind === 'barrier') continue;
      add(counts, byteCountOf(record));
      for await (const byteCount of verifyAddedFiles(record, archive.name, options)) {
        timer.refresh();
        counts.byteCount += byteCount;
      }
      last = record.link;
      requireSame(last, archived);
    }
  } finally {
    clearTimeout(timer);
  }
  if (archived !== null && archived.position > last.position) {
    throw new Error(
      `Expected records up to position ${archived.position}, where the archive ends; found the last one at ${last.position}: the end of the log is missing, or the archive is that of another log.`,
    );
  }
}

/** Reads the files that a record adds, and yields the bytes of each piece. Throws `data_corrupt`. */
async function* verifyAddedFiles(
  record: LogRecord,
  log: string,
  { blobs, layout, store }: VerificationOptions,
): AsyncIterable<number> {
  if (record.kind !== 'commit' || log === CATALOGUE) return;
  const where = `Position ${record.link.position} of ${log}`;
  for (const { bytes } of record.commit.fragments) {
    for (const { file } of layout.filesAddedBy(decodeOperations(bytes, where), store, log)) {
      const { blob, byteLength: byteCount, digest } = file;
      const blocks = await blobs.openPinned(blob, { byteCount, digest });
      for await (const piece of blocks.readAll()) yield piece.length;
    }
  }
}

function requireSame(found: LogLink, archived: LogLink | null): void {
  if (archived === null || found.position !== archived.position) return;
  if (found.digest === archived.digest) return;
  throw new Error(
    `Expected the record at position ${found.position} to have the digest ${archived.digest}, as in the archive; found ${found.digest}.`,
  );
}

/** Checks each chunk by its digest, and the chain through all of them. */
async function verifyArchive(
  archive: LogArchive,
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  const names = await archive.list();
  const problems: string[] = [];
  let first: LogLink | null = null;
  for (const name of names) {
    try {
      const chunk = await archive.load(name);
      first ??= chunk.after;
      add(
        counts,
        chunk.messages.reduce((sum, { bytes }) => sum + bytes.length, 0),
      );
    } catch (error) {
      // The chunk may have been removed since it was listed.
      if (!(await archive.list()).some((listed) => listed.name === name.name)) continue;
      add(counts, 0);
      problems.push((error as Error).message);
    }
  }
  const end = first === null ? null : await lastReadable(archive, first, signal);
  const endPosition = Math.max(0, ...names.map((name: ChunkName) => name.endPosition));
  if (end !== null && end.position < endPosition) {
    problems.push(
      `Expected records up to position ${endPosition}, where its newest chunk ends; found none that can be read after ${end.position}.`,
    );
  }
  if (problems.length > 0) throw new Error(problems.join(' '));
}

async function lastReadable(
  archive: LogArchive,
  first: LogLink,
  signal: AbortSignal,
): Promise<LogLink> {
  let last = first;
  for await (const { link } of archive.read(first, { signal })) last = link;
  return last;
}

function tooLate(): Error {
  return new Error(
    `Expected records of the log; it delivered nothing for ${READ_MS_MAX / 1_000} s.`,
  );
}
