// The write that adds the rows of a shared segment file, on the node that owns the log.

import { hash } from 'node:crypto';
import type { Clock } from '../../common/clock.js';
import { noLeaderError, SagittaError } from '../../common/errors.js';
import { encodeLogRecord, type LogRecord, type SharedSegment } from '../../segment/log-record.js';
import { MaybeCommittedError } from '../../storage/commit-log.js';
import type { WriteResult } from '../api/database-api.js';
import { logName } from '../layout/keys.js';
import type { CollectionDefinition } from '../layout/manifest.js';
import { unshared } from './added-files.js';
import type { Collection } from './collection.js';
import { NEVER } from './expiries.js';
import type { Write } from './writer.js';

/** A file whose rows are to be added. */
export interface FileToAdd {
  readonly file: SharedSegment;
  /** The shape of the collection when the rows were checked. */
  readonly shape: string;
  /** See `VectorBatch.expiresAtMs`; null if no row has an expiry of its own. */
  readonly expiresAtMs: Float64Array | null;
}

/** Identifies what rows are checked against: the vectors and the declared types of a collection. */
export function shapeOf({ vectors, columns, schema }: CollectionDefinition): string {
  return hash('sha256', JSON.stringify([vectors, columns, schema]));
}

/**
 * Resolves with the write when this node has the file. Preparing it throws `invalid_request` if the vectors or the schema
 * were changed since the rows were checked, and `no_leader` if the file was shared too long ago. Rejects with `no_leader` if
 * the shared files do not answer, and with `data_corrupt` if the file is damaged.
 */
export async function fileWrite(
  collection: Collection,
  { file, shape, expiresAtMs }: FileToAdd,
  clock: Clock,
): Promise<Write<WriteResult>> {
  const { addedFiles, rows } = collection;
  const staged = await addedFiles.stage(file).catch(unshared);
  const { segment } = staged;
  let offered: number | null = null;
  return {
    // Its effect is too large to share a commit with others.
    reads: 'all',
    async prepare(sequence) {
      if (shape !== shapeOf(collection.definition)) throw changed(collection.definition);
      if (!addedFiles.mayName(file)) throw noLeaderError();
      let insertedCount = 0;
      for (let row = 0; row < segment.rowCount; row++) {
        if (!rows.has(segment.idBytes(row))) insertedCount++;
      }
      const updatedCount = segment.rowCount - insertedCount;
      const timeMs = clock.now();
      const companion = companionOf(collection, segment, { expiresAtMs, sequence, timeMs });
      offered = sequence;
      await addedFiles.nameAhead(staged, sequence);
      const record = { kind: 'file', timeMs, file } satisfies LogRecord;
      return {
        last: { sequence, timeMs },
        operations: [
          {
            kind: 'append',
            log: logName(collection.incarnation),
            sequence,
            record: encodeLogRecord(record),
          },
          ...(companion?.operations ?? []),
        ],
        result: { insertedCount, updatedCount, sequence },
        apply() {
          addedFiles.apply(staged, sequence);
          companion?.apply();
        },
      };
    },
    failed(error) {
      // Otherwise the log may contain the record, and this node will read it.
      if (error instanceof MaybeCommittedError) return;
      addedFiles.discard(file, { sequence: offered, isOwn: false }).catch(() => {});
    },
  };
}

function companionOf(
  collection: Collection,
  segment: { readonly rowCount: number; id(row: number): string },
  {
    expiresAtMs,
    sequence,
    timeMs,
  }: Pick<FileToAdd, 'expiresAtMs'> & { readonly sequence: number; readonly timeMs: number },
) {
  const defaultMs = collection.expiresAtMsOf(timeMs);
  if (expiresAtMs === null && defaultMs === NEVER) return undefined;
  const ids = Array.from({ length: segment.rowCount }, (_, row) => segment.id(row));
  const stated = { expiresAtMs: expiresAtMs ?? undefined };
  return collection.expiries.companionOf(ids, stated, { sequence, defaultMs });
}

function changed({ id }: CollectionDefinition): SagittaError {
  return new SagittaError(
    'invalid_request',
    `The vectors or the schema of collection "${id}" were changed while the request was read. Send the remaining rows again.`,
  );
}
