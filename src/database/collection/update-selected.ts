// The write that changes the metadata of selected vectors: one consistent set of rows, changed at one sequence. It is
// bounded, because its rows are in memory while it is prepared. A larger change takes several updates, each of which
// continues where the previous one ended, because it skips rows that already have the new metadata.

import type { Clock } from '../../common/clock.js';
import { field, type SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { MetadataChange, UpdateResult } from '../api/database-api.js';
import type { FilterCache } from '../filters/filter-cache.js';
import type { Collection } from './collection.js';
import { isChangedBy } from './merge-patch.js';
import { type ChangedRow, changedRow, rewriteRows, withIssues } from './patches.js';
import type { RowAddress } from './rows.js';
import { rowsOf } from './snapshot.js';
import type { Write } from './writer.js';
import { type CommitTogether, type ParsedSelection, withoutEffect } from './writes.js';

export interface UpdateOptions {
  readonly change: MetadataChange;
  /** The maximum number of vectors to change; undefined for all, up to the limits of one request body. */
  readonly limit: number | undefined;
  readonly alsoCommit: CommitTogether<UpdateResult> | undefined;
}

interface Services {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly filters: FilterCache;
}

/** Rows checked between two yields to the event loop, in a few milliseconds. */
const YIELD_ROWS = 1_024;

/** Preparing the write throws `invalid_metadata` and `limit_exceeded`. */
export function updateSelected(
  collection: Collection,
  selection: ParsedSelection,
  { change, limit, alsoCommit }: UpdateOptions,
  { clock, limits, filters }: Services,
): Write<UpdateResult> {
  const selectRows = rowSelector(collection, selection, filters);
  return {
    reads: 'all',
    async prepare(sequence, pending) {
      const found = await changeRows(collection, await selectRows(), { change, limit, limits });
      const { rows, hasMore } = found;
      if (hasMore && limit === undefined) throw tooMany(rows.length);
      const updatedCount = rows.length;
      if (updatedCount === 0) {
        return withoutEffect({ updatedCount, hasMore, sequence: collection.sequence }, alsoCommit);
      }
      const result = { updatedCount, hasMore, sequence };
      return rewriteRows(collection, rows, result, { pending, clock, alsoCommit });
    },
  };
}

function rowSelector(
  collection: Collection,
  selection: ParsedSelection,
  filters: Services['filters'],
): () => Promise<Iterable<RowAddress>> {
  if (selection.kind === 'ids') {
    const ids = [...new Set(selection.ids)];
    return async () => ids.map((id) => collection.find(id)).filter((found) => found !== undefined);
  }
  const filter = selection.kind === 'filter' ? selection.filter : null;
  return async () => rowsOf(await filters.filter(collection.snapshot().views, filter));
}

/** Changes the selected rows until a bound is reached; rows that would stay the same are skipped. */
async function changeRows(
  collection: Collection,
  selected: Iterable<RowAddress>,
  {
    change,
    limit = Number.POSITIVE_INFINITY,
    limits,
  }: Pick<UpdateOptions, 'change' | 'limit'> & { readonly limits: Limits },
): Promise<{ readonly rows: readonly ChangedRow[]; readonly hasMore: boolean }> {
  // The limits of one request body of vectors.
  const { batchRowsMax, bodyBytesMax } = limits;
  const rows: ChangedRow[] = [];
  let seenCount = 0;
  let byteCount = 0;
  for (const address of selected) {
    if (++seenCount % YIELD_ROWS === 0) await new Promise((resolve) => setImmediate(resolve));
    if (!wouldChange(address, change)) continue;
    if (rows.length >= limit) return { rows, hasMore: true };
    const { segment, row } = address;
    const changed = withIssues(
      () => changedRow(collection, address, { metadata: change }, limits),
      (issue) => ({
        ...issue,
        location: field(
          change.kind === 'patch' ? 'patch' : 'metadata',
          ...issue.location.path.slice(1),
        ),
        detail: `The vector "${segment.id(row)}": ${issue.detail}`,
      }),
    );
    byteCount += segment.vectorBytes(row) + Buffer.byteLength(changed.metadata);
    const isFull = rows.length >= batchRowsMax || (rows.length > 0 && byteCount > bodyBytesMax);
    if (isFull) return { rows, hasMore: true };
    rows.push(changed);
  }
  return { rows, hasMore: false };
}

function wouldChange({ segment, row }: RowAddress, { kind, text }: MetadataChange): boolean {
  const metadata = segment.metadata(row);
  return kind === 'replace' ? metadata !== text : isChangedBy(metadata, text);
}

function tooMany(count: number): SagittaError {
  const detail = `Expected at most ${count} vectors to change in one update; found more. Set limit, and repeat the update while has_more is true.`;
  const location = field('limit');
  return validationError([{ location, code: 'limit_exceeded', detail, expected: count }]);
}
