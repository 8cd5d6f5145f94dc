// The records of collections, segments and aliases that clients see, and the pages of their lists.

import { field, validationError } from '../../common/errors.js';
import type { FieldShape, FieldShapes, VectorShape } from '../../common/types.js';
import { type DenseSpec, UNNAMED } from '../../common/vectors.js';
import type { Engine } from '../../engine/core/engine.js';
import type { SparseIndexes } from '../../inverted/sparse-index.js';
import type { TextIndexes } from '../../inverted/text-index.js';
import type { Segment } from '../../segment/segment.js';
import type { CollectionPlacement, CommitLogs } from '../../storage/commit-log.js';
import type {
  AliasRecord,
  CollectionRecord,
  SegmentRecord,
  SegmentsPage,
} from '../api/database-api.js';
import type { Page } from '../api/query-api.js';
import type { Maintenance } from '../collection/maintenance.js';
import type { AliasEntry } from './aliases.js';
import {
  type CollectionEntry,
  type Collections,
  describeLoad,
  reasonForClients,
} from './collections.js';

/** Digits of the largest segment number. Leading zeros make text order equal to numeric order. */
const NUMBER_DIGITS = 16;

type CollectionState = CollectionEntry['state'];

type MemoryUse = CollectionRecord['memory'];

interface MemoryServices {
  readonly engine: Engine;
  readonly textIndexes: TextIndexes;
  readonly sparseIndexes: SparseIndexes;
}

interface RecordServices extends MemoryServices {
  readonly engineReason: string;
  readonly logs: Pick<CommitLogs, 'placementOf'>;
}

export function toRecord(
  { definition, state }: CollectionEntry,
  services: RecordServices,
): CollectionRecord {
  const collection = state.kind === 'ready' ? state.collection : undefined;
  const { ttlSeconds, schema, embed, replicationFactor } = definition;
  const placement = services.logs.placementOf(definition.incarnation);
  const updatedAtMs = Math.max(definition.updatedAtMs, collection?.writtenAtMs ?? 0);
  return {
    id: definition.id,
    ...describeVectors(definition.vectors),
    description: definition.description,
    labels: definition.labels,
    ...(definition.text === undefined ? {} : { text: definition.text }),
    ...(ttlSeconds !== null && { ttlSeconds }),
    ...(schema !== null && { schema }),
    ...(embed !== null && { embed }),
    ...(replicationFactor !== null && { replicationFactor }),
    ...(placement === null ? {} : placementMembers(placement)),
    // A new collection on another node is known to be empty.
    status: state.kind === 'elsewhere' && state.isNew ? 'ready' : state.kind,
    ...(state.kind === 'ready' ? {} : { statusReason: reasonOf(state, placement) }),
    vectorCount: collection?.rows.liveCount ?? 0,
    sequence: collection?.sequence ?? 0,
    createdAt: new Date(definition.createdAtMs).toISOString(),
    updatedAt: new Date(updatedAtMs).toISOString(),
    engine: { name: services.engine.name, reason: services.engineReason },
    memory: memoryOfState(state, services),
    diskBytes: state.kind === 'ready' ? diskBytesOf(state.maintenance) : 0,
  };
}

/** The memory of a collection; 0 unless it is ready. */
function memoryOfState(state: CollectionState, services: MemoryServices): MemoryUse {
  const memory = { hostBytes: 0, mappedBytes: 0, deviceBytes: 0 };
  if (state.kind !== 'ready') return memory;
  const { rows } = state.collection;
  memory.hostBytes += rows.indexBytes;
  const bases = new Set<Uint8Array>();
  for (const segment of rows.segments) {
    const used = memoryOf(segment, services, bases);
    memory.hostBytes += used.hostBytes;
    memory.mappedBytes += used.mappedBytes;
    memory.deviceBytes += used.deviceBytes;
  }
  return memory;
}

/** Sums over collections, for metrics. */
export interface CollectionSums extends MemoryUse {
  readonly collections: number;
  readonly failed: number;
  /** Vectors of the collections that are ready. */
  readonly vectors: number;
}

export function sumCollections(
  entries: readonly CollectionEntry[],
  services: MemoryServices,
): CollectionSums {
  const memory = { hostBytes: 0, mappedBytes: 0, deviceBytes: 0 };
  const sums = { collections: entries.length, failed: 0, vectors: 0, ...memory };
  for (const { state } of entries) {
    if (state.kind === 'failed') sums.failed++;
    if (state.kind !== 'ready') continue;
    sums.vectors += state.collection.rows.liveCount;
    const used = memoryOfState(state, services);
    sums.hostBytes += used.hostBytes;
    sums.mappedBytes += used.mappedBytes;
    sums.deviceBytes += used.deviceBytes;
  }
  return sums;
}

function placementMembers({ nodes, joining, leaving }: CollectionPlacement) {
  if (joining === null) return { nodes };
  return { nodes, move: { to: joining, ...(leaving === null ? {} : { from: leaving }) } };
}

/** One page of the segments, in the order of their numbers. Throws `cursor_invalid`. */
export function toSegmentsPage(
  { collection, maintenance }: Extract<CollectionEntry['state'], { kind: 'ready' }>,
  request: { readonly limit: number; readonly cursor: string | undefined },
  services: RecordServices,
): SegmentsPage {
  const { fileBytes, logBytes } = maintenance;
  const { segments } = collection.rows;
  const sorted = [...segments].sort((left, right) => left.number - right.number);
  const nameOf = ({ number }: Segment) => String(number).padStart(NUMBER_DIGITS, '0');
  const { entries, ...page } = pageOf(sorted, nameOf, request);
  return {
    segments: entries.map((segment) => ({
      number: segment.number,
      state: stateOf(segment, fileBytes),
      rowCount: segment.rowCount,
      vectorCount: segment.liveCount,
      memory: memoryOf(segment, services),
      fileBytes: fileBytes.get(segment.number) ?? 0,
    })),
    ...page,
    total: segments.length,
    fileBytes: sumOf(fileBytes),
    logBytes,
  };
}

function stateOf(segment: Segment, fileBytes: ReadonlyMap<number, number>): SegmentRecord['state'] {
  if (!segment.isSealed) return 'active';
  return fileBytes.has(segment.number) ? 'stored' : 'sealed';
}

/** @param counted the bases that are counted already, since segments share them; those of the segment are added. */
function memoryOf(
  segment: Segment,
  { engine, textIndexes, sparseIndexes }: MemoryServices,
  counted = new Set<Uint8Array>(),
): MemoryUse {
  const { mappedBytes } = segment;
  let hostBytes = segment.hostBytes + textIndexes.bytesUsed(segment);
  for (const basis of segment.bases) {
    if (!counted.has(basis)) hostBytes += basis.byteLength;
    counted.add(basis);
  }
  let deviceBytes = 0;
  for (const field of segment.vectorFields.values()) hostBytes += sparseIndexes.bytesUsed(field);
  for (const key of segment.blockKeys) {
    const used = engine.bytesUsed(key);
    hostBytes += used.hostBytes;
    deviceBytes += used.deviceBytes;
  }
  return { hostBytes, mappedBytes, deviceBytes };
}

function sumOf(fileBytes: ReadonlyMap<number, number>): number {
  let bytes = 0;
  for (const byteCount of fileBytes.values()) bytes += byteCount;
  return bytes;
}

/** Bytes of the segment files and of the log that no checkpoint has trimmed. */
export function diskBytesOf({ fileBytes, logBytes }: Maintenance): number {
  return sumOf(fileBytes) + logBytes;
}

/** Records show named dense vectors and multi-vectors together. */
function describeVectors({ [UNNAMED]: unnamed, ...named }: FieldShapes): ShownVectors {
  const vectors: Record<string, VectorShape & { multi?: boolean }> = {};
  const sparseVectors: Record<string, Record<string, never>> = {};
  for (const [name, shape] of Object.entries(named)) {
    if (shape.kind === 'sparse') sparseVectors[name] = {};
    else {
      vectors[name] = {
        ...shownShape(shape),
        ...(shape.kind === 'multi' ? { multi: true } : {}),
      };
    }
  }
  const isAny = (shapes: object) => Object.keys(shapes).length > 0;
  return {
    ...(unnamed && shownShape(unnamed)),
    ...(isAny(vectors) ? { vectors } : {}),
    ...(isAny(sparseVectors) ? { sparseVectors } : {}),
  };
}

type ShownVectors = Pick<
  CollectionRecord,
  'dimension' | 'metric' | 'elementType' | 'vectors' | 'sparseVectors'
>;

function shownShape(shape: FieldShape) {
  const { metric, dimension, element } = shape as DenseSpec & VectorShape;
  return { dimension, metric, ...(element && { elementType: element }) };
}

function reasonOf(
  state: Exclude<CollectionState, { kind: 'ready' }>,
  placement: CollectionPlacement | null,
): string {
  if (state.kind !== 'elsewhere') return describeUnserved(state).reason;
  return `It is held by ${placement?.nodes.join(', ') ?? 'other nodes'}.`;
}

/** A collection that this process should serve but does not. */
export interface UnservedCollection {
  readonly id: string;
  readonly status: 'loading' | 'failed';
  readonly reason: string;
}

export function describeUnserved(
  state: Extract<CollectionState, { kind: 'loading' | 'failed' }>,
): Omit<UnservedCollection, 'id'> {
  if (state.kind === 'failed') return { status: 'failed', reason: reasonForClients(state.error) };
  return { status: 'loading', reason: describeLoad(state.progress) };
}

/** Undefined for an alias whose collection was deleted. */
export function toAliasRecord(
  { name, incarnation, createdAtMs, updatedAtMs }: AliasEntry,
  collections: Collections,
): AliasRecord | undefined {
  const entry = collections.findIncarnation(incarnation);
  return (
    entry && {
      name,
      collection: entry.definition.id,
      createdAt: new Date(createdAtMs).toISOString(),
      updatedAt: new Date(updatedAtMs).toISOString(),
    }
  );
}

/** One page of entries that are sorted by name. Throws `cursor_invalid`. */
export function pageOf<Entry>(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
): Page & { readonly entries: readonly Entry[] } {
  const after = cursor === undefined ? null : decodeNameCursor(cursor);
  const rest = after === null ? entries : entries.filter((entry) => nameOf(entry) > after);
  const page = rest.slice(0, limit);
  const hasMore = rest.length > page.length;
  return {
    entries: page,
    hasMore,
    nextCursor: hasMore ? encodeNameCursor(nameOf(page.at(-1)!)) : undefined,
  };
}

/** The cursor is the last name of the page, which needs no seal because the client knows it. */
function encodeNameCursor(name: string): string {
  return Buffer.from(name).toString('base64url');
}

function decodeNameCursor(token: string): string {
  const id = Buffer.from(token, 'base64url').toString();
  if (id === '' || encodeNameCursor(id) !== token) {
    const detail = 'The cursor was not issued by this service.';
    throw validationError([{ location: field('cursor'), code: 'cursor_invalid', detail }]);
  }
  return id;
}
