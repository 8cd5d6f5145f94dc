// A DatabaseService in a few maps: enough to test the HTTP layer, and nothing of it is durable.
// Filters know equality only, and a cursor is a readable offset.

import { systemClock } from '../../src/common/clock.js';
import { field, SagittaError } from '../../src/common/errors.js';
import type { JsonObject, Metric, VectorBatch } from '../../src/common/types.js';
import type {
  CollectionRecord,
  Include,
  StreamProgress,
  VectorRecord,
} from '../../src/database/api.js';
import { ApiKeys } from '../../src/database/api-keys.js';
import type { CollectionHandle } from '../../src/database/collection-handle.js';
import type { DatabaseService } from '../../src/database/database.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';
import { fakeJoin, fakeScan } from './fake-readings.js';

interface Stored {
  readonly version: string;
  readonly values: Float32Array;
  readonly metadata: string;
}
interface Collection {
  record: CollectionRecord;
  readonly vectors: Map<string, Stored>;
}

function checkQueryVector(vector: Float32Array, dimension: number, metric: Metric = 'dot'): void {
  const code =
    vector.length !== dimension
      ? 'dimension_mismatch'
      : metric === 'cosine' && vector.every((x) => x === 0)
        ? 'invalid_vector'
        : null;
  if (code === null) return;
  const detail = 'The vector does not fit.';
  throw new SagittaError(code, detail, { issues: [{ location: field('vector'), code, detail }] });
}

/** Many queries are answered so many at a time. */
const GROUP_QUERIES = 2;

export interface FakeDatabase extends DatabaseService {
  state: DatabaseService['state'];
  /** What was written last, as it came from the HTTP layer. */
  lastBatch: VectorBatch | undefined;
  /** How often anything was written. */
  writeCount: number;
  /** Snapshots of many queries that nobody has let go of. */
  openSessionCount: number;
  /** Runs before every query; a test makes it wait or throw. */
  beforeQuery: (signal: AbortSignal | undefined) => Promise<void>;
  /** Runs before every write of vectors; a test makes it wait or throw. */
  beforeWrite: () => Promise<void>;
  /** Runs before a collection is deleted. */
  beforeDrop: () => Promise<void>;
  /** Runs before every batch of a stream is written. */
  beforeStreamedWrite: () => Promise<void>;
}

export function createFakeDatabase(): FakeDatabase {
  const collections = new Map<string, Collection>();
  const replies = new Map<string, { digest: string; reply: never }>();
  const inFlight = new Set<string>();

  const find = (id: string): Collection => {
    const collection = collections.get(id);
    if (collection === undefined) {
      throw new SagittaError('collection_not_found', `There is no collection "${id}".`);
    }
    return collection;
  };
  const findVector = (id: string, vectorId: string): Stored => {
    const stored = find(id).vectors.get(vectorId);
    if (stored === undefined) {
      throw new SagittaError('vector_not_found', `There is no vector "${vectorId}".`);
    }
    return stored;
  };
  const touch = (collection: Collection): number => {
    database.writeCount++;
    const sequence = collection.record.sequence + 1;
    collection.record = {
      ...collection.record,
      sequence,
      vectorCount: collection.vectors.size,
    };
    return sequence;
  };
  const toRecord = (id: string, stored: Stored, include: Include): VectorRecord => ({
    id,
    version: stored.version,
    ...(include.values ? { values: stored.values } : {}),
    ...(include.metadata ? { metadata: stored.metadata } : {}),
  });
  const passing = (collection: Collection, filter: JsonObject | undefined) =>
    [...collection.vectors].filter(([, { metadata }]) => {
      const document = JSON.parse(metadata) as JsonObject;
      return Object.entries(filter ?? {}).every(([name, value]) => document[name] === value);
    });
  const readCursor = (cursor: string | undefined): number => {
    if (cursor === undefined) return 0;
    if (/^at-\d+$/.test(cursor)) return Number(cursor.slice(3));
    throw new SagittaError('cursor_invalid', 'The cursor cannot be used.');
  };
  const slice = <Row>(rows: Row[], start: number, limit: number) => ({
    rows: rows.slice(start, start + limit),
    hasMore: start + limit < rows.length,
    nextCursor: start + limit < rows.length ? `at-${start + limit}` : undefined,
  });

  const collection = (id: string): CollectionHandle => {
    const incarnation = collections.get(id);
    const handle: Pick<CollectionHandle, keyof CollectionHandle> = {
      id,
      exists: incarnation !== undefined,
      requireExists: () => {
        if (find(id) === incarnation) return;
        throw new SagittaError('collection_not_found', 'The collection was created or replaced.');
      },
      get shape() {
        return find(id).record;
      },
      record: () => find(id).record,
      async update(change) {
        const collection = find(id);
        const { description, labels } = change;
        collection.record = {
          ...collection.record,
          ...(description === undefined ? {} : { description }),
          ...(labels === undefined ? {} : { labels }),
        };
        return collection.record;
      },
      async drop() {
        await database.beforeDrop();
        const vectorCount = find(id).vectors.size;
        collections.delete(id);
        return { vectorCount };
      },
      async write(batch, { mode, alsoCommit }) {
        await database.beforeWrite();
        const collection = find(id);
        database.lastBatch = batch;
        const texts = (column: VectorBatch['ids'], row: number) =>
          Buffer.from(column.bytes).toString('utf8', column.offsets[row], column.offsets[row + 1]);
        const rows = Array.from({ length: batch.count }, (_, row) => texts(batch.ids, row));
        const isKnown = (row: string) => collection.vectors.has(row);
        if (mode === 'insert' && rows.some(isKnown))
          throw new SagittaError('vector_exists', 'Exists.');
        if (mode === 'update' && !rows.every(isKnown)) {
          throw new SagittaError('vector_not_found', 'There is no such vector.');
        }
        const updatedCount = rows.filter(isKnown).length;
        const { dimension, sequence } = collection.record;
        for (const [row, vectorId] of rows.entries()) {
          collection.vectors.set(vectorId, {
            version: `v${sequence + 1}`,
            values: batch.values.slice(row * dimension, (row + 1) * dimension),
            metadata: texts(batch.metadata, row),
          });
        }
        const insertedCount = rows.length - updatedCount;
        const result = { insertedCount, updatedCount, sequence: touch(collection) };
        alsoCommit?.(result);
        return result;
      },
      openWriteStream({ mode }) {
        find(id);
        const none = { batchCount: 0, rowCount: 0, insertedCount: 0, updatedCount: 0 };
        let progress: StreamProgress = { ...none, sequence: undefined };
        let last: Promise<unknown> = Promise.resolve();
        return {
          resumed: progress,
          get progress() {
            return progress;
          },
          async write(batch) {
            const before = last;
            const writing = (async () => {
              await before;
              await database.beforeStreamedWrite();
              const result = await handle.write(batch, { mode });
              progress = {
                batchCount: progress.batchCount + 1,
                rowCount: progress.rowCount + batch.count,
                insertedCount: progress.insertedCount + result.insertedCount,
                updatedCount: progress.updatedCount + result.updatedCount,
                sequence: result.sequence,
              };
            })();
            last = writing;
            await writing;
          },
          end: async (encode) => ({ reply: encode(progress), isReplay: false }),
          close() {},
        };
      },
      async patch(vectorId, { metadata, values, ifVersion }) {
        const stored = findVector(id, vectorId);
        if (ifVersion !== undefined && ifVersion !== stored.version) {
          throw new SagittaError('precondition_failed', 'Changed.');
        }
        const collection = find(id);
        const sequence = touch(collection);
        const version = `v${sequence}`;
        const merged = {
          ...(JSON.parse(stored.metadata) as JsonObject),
          ...(JSON.parse(metadata ?? '{}') as JsonObject),
        };
        collection.vectors.set(vectorId, {
          version,
          values: values ?? stored.values,
          metadata: JSON.stringify(merged),
        });
        return { sequence, version };
      },
      async deleteVector(vectorId) {
        findVector(id, vectorId);
        find(id).vectors.delete(vectorId);
        return { sequence: touch(find(id)) };
      },
      async delete(selection, { dryRun, alsoCommit }) {
        const collection = find(id);
        const all = passing(collection, selection.kind === 'filter' ? selection.filter : {});
        const ids = all.map(([vectorId]) => vectorId);
        const chosen =
          selection.kind === 'ids' ? ids.filter((known) => selection.ids.includes(known)) : ids;
        if (!dryRun) for (const vectorId of chosen) collection.vectors.delete(vectorId);
        const sequence = dryRun ? collection.record.sequence : touch(collection);
        const result = { deletedCount: chosen.length, sequence };
        if (!dryRun) alsoCommit?.(result);
        return result;
      },
      get: (vectorId, include) => toRecord(vectorId, findVector(id, vectorId), include),
      fetch(ids, include) {
        const { vectors } = find(id);
        return {
          vectors: ids
            .filter((known) => vectors.has(known))
            .map((known) => toRecord(known, vectors.get(known)!, include)),
          notFound: ids.filter((unknown) => !vectors.has(unknown)),
        };
      },
      async list(request) {
        const all = passing(find(id), request.filter);
        const start = request.offset ?? readCursor(request.cursor);
        const { rows, ...page } = slice(all, start, request.limit ?? 100);
        const include = {
          values: request.includeValues ?? false,
          metadata: request.includeMetadata ?? true,
        };
        return {
          vectors: rows.map(([vectorId, stored]) => toRecord(vectorId, stored, include)),
          ...page,
          ...(request.offset === undefined ? {} : { total: all.length }),
        };
      },
      async count(filter) {
        return passing(find(id), filter).length;
      },
      async query(request, options = {}) {
        await database.beforeQuery(options.signal);
        const collection = find(id);
        const vector = request.vector ?? findVector(id, request.id ?? '').values;
        checkQueryVector(vector, collection.record.dimension, request.metric);
        const all = passing(collection, request.filter)
          .filter(([vectorId]) => vectorId !== request.id)
          .map(([vectorId, stored]) => {
            const score = stored.values.reduce((sum, x, i) => sum + x * vector[i]!, 0);
            return { vectorId, stored, score: Math.fround(score) };
          })
          .sort((a, b) => b.score - a.score);
        const limit = request.limit ?? request.topK ?? 10;
        const { rows, ...page } = slice(all, request.offset ?? readCursor(request.cursor), limit);
        const { includeValues = false, includeMetadata = false } = request;
        return {
          matches: rows.map(({ vectorId, stored, score }) => ({
            id: vectorId,
            score,
            ...(includeMetadata ? { metadata: stored.metadata } : {}),
            ...(includeValues === false ? {} : { values: stored.values }),
          })),
          ...page,
          total: all.length,
          valuesEncoding: includeValues === 'base64' ? 'base64' : 'numbers',
          sequence: collection.record.sequence,
          timings: {
            startedAtMs: performance.now(),
            filterMs: 1,
            waitMs: 2,
            searchMs: 3,
            assembleMs: 4,
          },
          work: {
            conditionCount: Object.keys(request.filter ?? {}).length,
            segmentCount: 1,
            rowsScanned: all.length,
            rowsPassedFilter: all.length,
            candidatesRescored: all.length,
          },
        };
      },
      async openQueries() {
        const { sequence, dimension, metric } = find(id).record;
        let isOpen = true;
        database.openSessionCount++;
        return {
          sequence,
          dimension,
          metric,
          prepare: (requests, firstIndex = 0) =>
            Array.from({ length: Math.ceil(requests.length / GROUP_QUERIES) }, (_, group) => {
              const start = group * GROUP_QUERIES;
              const own = requests.slice(start, start + GROUP_QUERIES);
              return {
                firstIndex: firstIndex + start,
                count: own.length,
                answer: ({ signal } = {}) =>
                  Promise.all(own.map((request) => handle.query(request, { signal }))),
              };
            }),
          close() {
            if (isOpen) database.openSessionCount--;
            isOpen = false;
          },
        };
      },
      async recall({ ids }) {
        return { recalls: ids.map(() => 1), sequence: find(id).record.sequence };
      },
      async scan({ filter, ...include }) {
        const { dimension, sequence } = find(id).record;
        const rows = passing(find(id), filter).map(([vectorId, stored]) => ({
          ...stored,
          id: vectorId,
        }));
        return fakeScan(rows, { ...include, dimension, sequence });
      },
      async join({ with: other = id, filter, withFilter, topK = 10 }) {
        const rowsOf = (collectionId: string, by: JsonObject | undefined) =>
          passing(find(collectionId), by).map(([vectorId, stored]) => ({
            ...stored,
            id: vectorId,
          }));
        return fakeJoin(rowsOf(id, filter), rowsOf(other, withFilter), topK);
      },
    };
    return handle as CollectionHandle;
  };

  const database: FakeDatabase = {
    state: 'ready',
    apiKeys: new ApiKeys({ store: createMemoryStore(), clock: systemClock }),
    lastBatch: undefined,
    writeCount: 0,
    openSessionCount: 0,
    beforeQuery: async () => {},
    beforeWrite: async () => {},
    beforeDrop: async () => {},
    beforeStreamedWrite: async () => {},
    async createCollection(input, options = {}) {
      const id = input.id ?? `generated-${collections.size}`;
      const existing = collections.get(id)?.record;
      if (existing !== undefined) {
        const isSame = existing.dimension === input.dimension && existing.metric === input.metric;
        if (options.ifNotExists && isSame) return { record: existing, created: false };
        throw new SagittaError('collection_exists', `The collection "${id}" exists.`);
      }
      const record: CollectionRecord = {
        id,
        dimension: input.dimension,
        metric: input.metric,
        description: input.description,
        labels: input.labels,
        status: 'ready',
        vectorCount: 0,
        sequence: 0,
        createdAt: '2026-11-21T08:00:00.000Z',
        updatedAt: '2026-11-21T08:00:00.000Z',
        engine: { name: 'fake', reason: 'a test' },
        memory: { hostBytes: 0, deviceBytes: 0 },
      };
      database.writeCount++;
      collections.set(id, { record, vectors: new Map() });
      options.alsoCommit?.(record);
      return { record, created: true };
    },
    collection,
    listCollections({ limit = 100, cursor, isVisible = () => true }) {
      const records = [...collections.values()]
        .map(({ record }) => record)
        .filter(({ id }) => isVisible(id));
      const { rows, ...page } = slice(records, readCursor(cursor), limit);
      return { collections: rows, total: records.length, ...page };
    },
    async runIdempotent({ scope, key, payloadDigest }, perform) {
      const place = JSON.stringify([scope, key]);
      if (inFlight.has(place)) throw new SagittaError('idempotency_in_flight', 'Running.');
      const stored = replies.get(place);
      if (stored !== undefined) {
        if (stored.digest === payloadDigest) return { reply: stored.reply, isReplay: true };
        throw new SagittaError('idempotency_key_reused', 'The key was used with another payload.');
      }
      inFlight.add(place);
      try {
        let attached: unknown;
        const reply = await perform((encode) => (result) => {
          attached = encode(result);
          return [];
        });
        replies.set(place, { digest: payloadDigest, reply: (attached ?? reply) as never });
        return { reply, isReplay: false };
      } finally {
        inFlight.delete(place);
      }
    },
    async close() {
      database.state = 'stopping';
    },
  };
  return database;
}
