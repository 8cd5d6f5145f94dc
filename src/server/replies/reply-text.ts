// Records as JSON text. Metadata goes into replies as it was sent, so bodies are joined from pieces
// rather than serialized whole.

import { float32Text, vectorText } from '../../common/float-text.js';
import type { CollectionRecord, ListReply, VectorRecord } from '../../database/api.js';
import type { Explain, Match, Page, QueryReply } from '../../database/query/query-api.js';
import { joinInTurns, type OnGrown } from './yield.js';

export function collectionText(record: CollectionRecord): string {
  return JSON.stringify({
    id: record.id,
    dimension: record.dimension,
    metric: record.metric,
    description: record.description,
    labels: record.labels,
    status: record.status,
    vector_count: record.vectorCount,
    sequence: record.sequence,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
    engine: { name: record.engine.name, reason: record.engine.reason },
    memory: {
      host_bytes: record.memory.hostBytes,
      device_bytes: record.memory.deviceBytes,
    },
  });
}

export function vectorRecordText(record: VectorRecord): string {
  return `{"id":${JSON.stringify(record.id)}${valuesMember(record.values, 'numbers')}${metadataMember(record.metadata)}}`;
}

/** Of a fetch. */
export async function fetchedText(
  found: { vectors: readonly VectorRecord[]; notFound: readonly string[] },
  onGrown: OnGrown,
): Promise<string> {
  const vectors = await joinInTurns(found.vectors, vectorRecordText, onGrown);
  return `{"vectors":[${vectors}],"not_found":${JSON.stringify(found.notFound)}}`;
}

export async function listText(reply: ListReply, onGrown: OnGrown): Promise<string> {
  const vectors = await joinInTurns(reply.vectors, vectorRecordText, onGrown);
  return `{"vectors":[${vectors}]${pageMembers(reply)}}`;
}

export async function queryText(reply: QueryReply, onGrown: OnGrown): Promise<string> {
  const textOf = (match: Match) => matchText(match, reply.valuesEncoding);
  const matches = await joinInTurns(reply.matches, textOf, onGrown);
  const explain =
    reply.explain === undefined
      ? ''
      : `,"explain":${JSON.stringify(explainMembers(reply.explain))}`;
  return `{"matches":[${matches}]${pageMembers(reply)},"sequence":${reply.sequence}${explain}}`;
}

/** The members of a page, each behind a comma. */
export function pageMembers(page: Page): string {
  const next = page.nextCursor === undefined ? '' : `,"next_cursor":"${page.nextCursor}"`;
  const total = page.total === undefined ? '' : `,"total":${page.total}`;
  return `${next},"has_more":${page.hasMore}${total}`;
}

function matchText(match: Match, encoding: QueryReply['valuesEncoding']): string {
  const distance = match.distance === undefined ? '' : `,"distance":${float32Text(match.distance)}`;
  return `{"id":${JSON.stringify(match.id)},"score":${float32Text(match.score)}${distance}${metadataMember(match.metadata)}${valuesMember(match.values, encoding)}}`;
}

function metadataMember(metadata: string | undefined): string {
  return metadata === undefined ? '' : `,"metadata":${metadata}`;
}

function valuesMember(
  values: Float32Array | undefined,
  encoding: QueryReply['valuesEncoding'],
): string {
  if (values === undefined) return '';
  if (encoding === 'numbers') return `,"values":${vectorText(values)}`;
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return `,"values":"${bytes.toString('base64')}"`;
}

function explainMembers(explain: Explain) {
  return {
    engine: explain.engine,
    segment_count: explain.segmentCount,
    rows_scanned: explain.rowsScanned,
    rows_passed_filter: explain.rowsPassedFilter,
    candidates_rescored: explain.candidatesRescored,
    is_certified: explain.isCertified,
    filter_ms: explain.filterMs,
    search_ms: explain.searchMs,
    assemble_ms: explain.assembleMs,
  };
}
