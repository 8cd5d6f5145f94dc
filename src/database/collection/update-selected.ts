// The write that changes the metadata of selected vectors: one consistent set of rows, changed at one
// sequence. Its rows are in memory while it is prepared, so it has a bound; a larger change is made in
// steps, which find what is left because a changed row is not selected for the same change again.

import { field, SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { DeclaredTypes, VectorBatch } from '../../common/types.js';
import type { MetadataChange, UpdateResult } from '../api.js';
import type { DatabaseServices } from '../database-services.js';
import type { Collection } from './collection.js';
import { findTypeViolation } from './declared-types.js';
import { type Expiries, NEVER } from './expiries.js';
import { applyMergePatch, isChangedBy } from './merge-patch.js';
import { batchOfRows } from './row-batch.js';
import type { RowAddress } from './rows.js';
import { rowsOf } from './snapshot.js';
import type { Write } from './writer.js';
import {
  type CommitTogether,
  logged,
  type ParsedSelection,
  recordOf,
  withoutEffect,
} from './writes.js';

export interface UpdateOptions {
  readonly change: MetadataChange;
  /** Vectors to change at most; undefined for all, of which there may be as many as in a body. */
  readonly limit: number | undefined;
  readonly alsoCommit: CommitTogether<UpdateResult> | undefined;
}

type Services = Pick<DatabaseServices, 'clock' | 'limits' | 'filters'>;

/** Rows that are looked at between two yields to the event loop: a few milliseconds. */
const YIELD_ROWS = 1_024;

/** Throws `invalid_metadata` and `limit_exceeded` when it is prepared. */
export function updateSelected(
  collection: Collection,
  selection: ParsedSelection,
  { change, limit, alsoCommit }: UpdateOptions,
  { clock, limits, filters }: Services,
): Write<UpdateResult> {
  const selectRows = rowSelector(collection, selection, filters);
  return {
    // It reads rows, so nothing may be pending, and it does not list the ids it changes in `pending`.
    mayFollow: () => false,
    endsCommit: true,
    async prepare(sequence) {
      const changes = new Changes(change, limits, collection);
      const hasMore = await collect(await selectRows(), changes, limit);
      if (hasMore && limit === undefined) throw tooMany(changes);
      const updatedCount = changes.count;
      if (updatedCount === 0) {
        return withoutEffect({ updatedCount, hasMore, sequence: collection.sequence }, alsoCommit);
      }
      const batch = changes.toBatch();
      const record = recordOf(collection, batch, clock.now());
      const companion = collection.expiries.companionOf(
        changes.ids,
        { ...batch, expiresAtMs: changes.expiresAtMs(collection.expiries) },
        { sequence, defaultMs: NEVER },
      );
      const result = { updatedCount, hasMore, sequence };
      return logged(collection, result, record, { alsoCommit, companion });
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

/** Collects changes until a bound is reached. Returns whether there is another one. */
async function collect(
  rows: Iterable<RowAddress>,
  changes: Changes,
  limit = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  let seenCount = 0;
  for (const address of rows) {
    if (++seenCount % YIELD_ROWS === 0) await new Promise((resolve) => setImmediate(resolve));
    if (!changes.wouldChange(address)) continue;
    if (changes.count >= limit || !changes.add(address)) return true;
  }
  return false;
}

/** Changed rows, as many as one body of vectors may have. */
class Changes {
  readonly #change: MetadataChange;
  readonly #limits: Limits;
  readonly #collection: Collection;
  readonly #types: DeclaredTypes | null;
  readonly #rows: RowAddress[] = [];
  readonly #texts: string[] = [];
  #byteCount = 0;

  constructor(change: MetadataChange, limits: Limits, collection: Collection) {
    this.#change = change;
    this.#limits = limits;
    this.#collection = collection;
    this.#types = collection.definition.schema;
  }

  get count(): number {
    return this.#rows.length;
  }

  wouldChange({ segment, row }: RowAddress): boolean {
    const { kind, text } = this.#change;
    const metadata = segment.metadata(row);
    return kind === 'replace' ? metadata !== text : isChangedBy(metadata, text);
  }

  /** Returns false when there is no room. Throws `invalid_metadata`. */
  add(address: RowAddress): boolean {
    const { batchRowsMax, bodyBytesMax } = this.#limits;
    const text = this.#changed(address);
    this.#checkTypes(address, text);
    const rowBytes = address.segment.vectorBytes(address.row) + Buffer.byteLength(text);
    const byteCount = this.#byteCount + rowBytes;
    const hasRoom = this.count < batchRowsMax && (byteCount <= bodyBytesMax || this.count === 0);
    if (!hasRoom) return false;
    this.#byteCount = byteCount;
    this.#rows.push(address);
    this.#texts.push(text);
    return true;
  }

  #changed({ segment, row }: RowAddress): string {
    const { kind, text } = this.#change;
    if (kind === 'replace') return text;
    try {
      return applyMergePatch(segment.metadata(row), text, this.#limits);
    } catch (error) {
      if (!(error instanceof SagittaError)) throw error;
      const detail = `The vector "${segment.id(row)}": ${error.message}`;
      const issues = error.issues.map((issue) => ({ ...issue, location: field('patch'), detail }));
      throw validationError(issues);
    }
  }

  #checkTypes({ segment, row }: RowAddress, text: string): void {
    const violation = this.#types === null ? null : findTypeViolation(this.#types, text);
    if (violation === null) return;
    const { members, expected } = violation;
    const detail = `The vector "${segment.id(row)}": ${violation.detail}`;
    const location = field(this.#change.kind === 'patch' ? 'patch' : 'metadata', ...members);
    throw validationError([{ location, code: 'invalid_metadata', detail, expected }]);
  }

  get ids(): string[] {
    return this.#rows.map(({ segment, row }) => segment.id(row));
  }

  /** The vectors keep their expiries. */
  expiresAtMs(expiries: Expiries): Float64Array {
    return Float64Array.from(this.#rows, (address) => expiries.timeOf(address));
  }

  toBatch(): VectorBatch {
    const rows = this.#rows.map((address, i) => ({
      id: address.segment.id(address.row),
      metadata: this.#texts[i]!,
      vectors: this.#collection.vectorsOf(address),
    }));
    return batchOfRows(this.#collection, rows);
  }
}

function tooMany({ count }: Changes): SagittaError {
  const detail = `More than ${count} vectors would change, as many as one update changes here. Set limit, and repeat the update while has_more is true.`;
  const location = field('limit');
  return validationError([{ location, code: 'limit_exceeded', detail, expected: count }]);
}
