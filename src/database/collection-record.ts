// The record of a collection as clients see it, made from the catalogue's entry; and the cursor by
// which their list goes on.

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
  let deviceBytes = 0;
  for (const { key } of collection?.rows.segments ?? []) {
    const used = engine.bytesUsed(key);
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
    memory: { hostBytes, deviceBytes },
  };
}

function reasonOf(state: Exclude<CollectionEntry['state'], { kind: 'ready' }>): string {
  if (state.kind === 'failed') return reasonForClients(state.error);
  const { segmentCount, loadedSegmentCount } = state.progress;
  return segmentCount === 0
    ? 'Its turn to be read from disk has not come, or its log is being read.'
    : `Its data is being read from disk: ${loadedSegmentCount} of ${segmentCount} segments, then the log.`;
}

/** The next entries, in the order of their ids. Throws `cursor_invalid`. */
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

/** Pages of the catalogue go by id, which needs no seal: nothing in it is the client's to protect. */
function encodeCollectionCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

function decodeCollectionCursor(token: string): string {
  const id = Buffer.from(token, 'base64url').toString();
  if (id === '' || encodeCollectionCursor(id) !== token) {
    const detail = 'The cursor is not a token of this service.';
    throw validationError([{ location: field('cursor'), code: 'cursor_invalid', detail }]);
  }
  return id;
}
