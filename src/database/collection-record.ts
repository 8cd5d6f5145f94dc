// The record of a collection as clients see it, made from the catalogue's entry, and the pages of the
// list of collections.

import { field, validationError } from '../common/errors.js';
import type { Engine } from '../engine/core/engine.js';
import type { CollectionRecord } from './api.js';
import { type CollectionEntry, reasonForClients } from './catalogue.js';
import type { Page } from './query/query-api.js';

export function toRecord(
  { definition, state }: CollectionEntry,
  { engine, engineReason }: { readonly engine: Engine; readonly engineReason: string },
): CollectionRecord {
  const collection = state.kind === 'ready' ? state.collection : undefined;
  let hostBytes = collection?.rows.hostBytes ?? 0;
  let mappedBytes = 0;
  let deviceBytes = 0;
  for (const segment of collection?.rows.segments ?? []) {
    const used = engine.bytesUsed(segment.key);
    mappedBytes += segment.mappedBytes;
    hostBytes += used.hostBytes;
    deviceBytes += used.deviceBytes;
  }
  const updatedAtMs = Math.max(definition.updatedAtMs, collection?.writtenAtMs ?? 0);
  return {
    id: definition.id,
    dimension: definition.dimension,
    metric: definition.metric,
    description: definition.description,
    labels: definition.labels,
    status: state.kind,
    ...(state.kind === 'ready' ? {} : { statusReason: reasonOf(state) }),
    vectorCount: collection?.rows.liveCount ?? 0,
    sequence: collection?.sequence ?? 0,
    createdAt: new Date(definition.createdAtMs).toISOString(),
    updatedAt: new Date(updatedAtMs).toISOString(),
    engine: { name: engine.name, reason: engineReason },
    memory: { hostBytes, mappedBytes, deviceBytes },
  };
}

function reasonOf(state: Exclude<CollectionEntry['state'], { kind: 'ready' }>): string {
  if (state.kind === 'failed') return reasonForClients(state.error);
  const { segmentCount, loadedSegmentCount } = state.progress;
  return segmentCount === 0
    ? 'It is waiting to be loaded, or its log is being read.'
    : `It is being loaded: ${loadedSegmentCount} of ${segmentCount} segments read; the log follows.`;
}

/** One page of the entries, which are in the order of their ids. Throws `cursor_invalid`. */
export function pageOf(
  entries: readonly CollectionEntry[],
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
): Page & { readonly entries: readonly CollectionEntry[] } {
  const after = cursor === undefined ? null : decodeCollectionCursor(cursor);
  const rest = after === null ? entries : entries.filter(({ definition }) => definition.id > after);
  const page = rest.slice(0, limit);
  const hasMore = rest.length > page.length;
  return {
    entries: page,
    hasMore,
    nextCursor: hasMore ? encodeCollectionCursor(page.at(-1)!.definition.id) : undefined,
  };
}

/** The cursor is the last id of the page. It needs no seal: it tells the client nothing new. */
function encodeCollectionCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

function decodeCollectionCursor(token: string): string {
  const id = Buffer.from(token, 'base64url').toString();
  if (id === '' || encodeCollectionCursor(id) !== token) {
    const detail = 'The cursor was not issued by this service.';
    throw validationError([{ location: field('cursor'), code: 'cursor_invalid', detail }]);
  }
  return id;
}
