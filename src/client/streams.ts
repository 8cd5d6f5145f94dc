// The methods of one collection that send or receive streams. Bytes go through as they are (Arrow,
// NDJSON); what understands Arrow is client/arrow.ts. Replies are repeated until they begin; a
// stream that was cut short always ends in an error.

import type { JsonObject, Metric } from '../common/types.js';
import type { Calls } from './calls.js';
import { SagittaClientError } from './error.js';
import { decodeLines, encodeVectorLines } from './ndjson.js';
import { type CallOptions, callOf } from './options.js';
import type { ReplyBody } from './reply-body.js';
import type { JoinRow, StoredVector, VectorInput, WriteMode, WriteStreamReply } from './types.js';
import { type ByteSource, openSource, type Resendable } from './upload.js';

export const MEDIA_TYPES = {
  arrow: 'application/vnd.apache.arrow.stream',
  ndjson: 'application/x-ndjson',
  parquet: 'application/vnd.apache.parquet',
} as const;

export interface WriteStreamOptions extends CallOptions {
  /** `upsert` when absent. */
  readonly mode?: WriteMode;
  /**
   * Names the stream, so that the same one can be sent again after a break and skips what is
   * durable. Made by the client when absent and the source is a function; without any key a stream
   * is sent once.
   */
  readonly idempotencyKey?: string;
}

export interface WriteBytesOptions extends WriteStreamOptions {
  readonly format: 'arrow' | 'ndjson';
  /** Of Arrow: the column of ids; `id` when absent. */
  readonly idColumn?: string;
  /** Of Arrow: the column of values; the first of `values`, `vector` and `embedding` when absent. */
  readonly vectorColumn?: string;
}

export interface QueryStreamOptions extends CallOptions {
  /** Of the reply; `arrow` when absent. */
  readonly format?: 'arrow' | 'ndjson';
  /** For rows that do not say; 10 when absent. */
  readonly topK?: number;
  readonly filter?: JsonObject;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  readonly includeMetadata?: boolean;
  readonly includeValues?: boolean;
  readonly minSequence?: number;
  /** The first of `vector`, `values` and `embedding` when absent. */
  readonly vectorColumn?: string;
}

/** `topK` or `scoreThreshold`, or both. */
export interface JoinRequest {
  /** The collection that is searched; this one when absent. */
  readonly with?: string;
  readonly topK?: number;
  readonly scoreThreshold?: number;
  /** Which rows of this collection are joined. */
  readonly filter?: JsonObject;
  /** Which rows of the other one are searched. */
  readonly withFilter?: JsonObject;
  /** No row is its own match; true when absent and the collection is joined with itself. */
  readonly excludeSelf?: boolean;
  readonly metric?: Metric;
  readonly includeMetadata?: boolean;
}

export interface ExportOptions extends CallOptions {
  readonly filter?: JsonObject;
  /** True when absent. */
  readonly includeValues?: boolean;
  /** True when absent. */
  readonly includeMetadata?: boolean;
}

export interface StreamReply {
  /** To be read once; leaving its loop, or `cancel()`, ends the request. */
  readonly body: ReplyBody;
  /** The write that the reply reflects, where the service says so before the stream. */
  readonly sequence: number | undefined;
}

export interface JoinReply extends StreamReply {
  /** The write of the searched collection that the reply reflects. */
  readonly withSequence: number | undefined;
}

export interface Streams {
  /**
   * Writes a stream of bytes, unit by unit, each of which is durable before the next but one is
   * read; memory stays bounded at both ends. Given a *function* that opens the same bytes anew, a
   * stream that breaks off is sent again under one idempotency key, and the service skips what is
   * durable. An error says in `committedCount` how many rows are. What the source throws is thrown.
   */
  writeStream(
    source: Resendable<ByteSource>,
    options: WriteBytesOptions,
  ): Promise<WriteStreamReply>;
  /** As writeStream, of vectors one by one; they travel as NDJSON. */
  writeAll(
    source: Resendable<Iterable<VectorInput> | AsyncIterable<VectorInput>>,
    options?: WriteStreamOptions,
  ): Promise<WriteStreamReply>;
  /**
   * Sends an Arrow stream of queries, a row each, and returns the replies in their order, which
   * begin while queries are still being sent. To be read meanwhile: the service takes no more
   * queries than it can answer.
   */
  queryStream(source: Resendable<ByteSource>, options?: QueryStreamOptions): Promise<StreamReply>;
  /** The nearest neighbours of every row, as bytes. */
  joinStream(
    request: JoinRequest,
    options: CallOptions & { readonly format: 'arrow' | 'ndjson' },
  ): Promise<JoinReply>;
  /** The nearest neighbours of every row, row by row in the order of arrival. */
  join(request: JoinRequest, options?: CallOptions): AsyncIterable<JoinRow>;
  /** Every row of one snapshot, as bytes, in the order of arrival. */
  exportStream(
    options: ExportOptions & { readonly format: 'arrow' | 'ndjson' | 'parquet' },
  ): Promise<StreamReply & { readonly sequence: number }>;
  /** Every row of one snapshot, row by row in the order of arrival. */
  exportAll(options?: ExportOptions): AsyncIterable<StoredVector>;
}

export function createStreams({ transport }: Calls, root: string): Streams {
  const streams: Streams = {
    async writeStream(source, options) {
      const { format, mode, idColumn, vectorColumn } = options;
      const isResendable = typeof source === 'function';
      const key = options.idempotencyKey ?? (isResendable ? crypto.randomUUID() : undefined);
      const { body } = await transport.send<WriteStreamReply>({
        method: 'POST',
        path: `${root}/vectors`,
        query: { mode, id_column: idColumn, vector_column: vectorColumn },
        stream: { source, contentType: MEDIA_TYPES[format] },
        headers: key === undefined ? {} : { 'idempotency-key': key },
        mayRepeat: isResendable,
        ...callOf(options),
      });
      return body;
    },
    writeAll: (source, options = {}) =>
      streams.writeStream(
        typeof source === 'function'
          ? () => encodeVectorLines(openSource(source))
          : encodeVectorLines(source),
        { ...options, format: 'ndjson' },
      ),
    async queryStream(source, options = {}) {
      const { format = 'arrow', filter } = options;
      const { body, headers } = await transport.open({
        method: 'POST',
        path: `${root}/query/batch`,
        query: {
          top_k: options.topK,
          filter: filter && JSON.stringify(filter),
          metric: options.metric,
          score_threshold: options.scoreThreshold,
          include_metadata: options.includeMetadata,
          include_values: options.includeValues,
          min_sequence: options.minSequence,
          vector_column: options.vectorColumn,
        },
        stream: { source, contentType: MEDIA_TYPES.arrow },
        headers: { accept: MEDIA_TYPES[format] },
        mayRepeat: true,
        ...callOf(options),
      });
      return { body, sequence: sequenceOf(headers) };
    },
    async joinStream(request, options) {
      const { body, headers } = await transport.open({
        method: 'POST',
        path: `${root}/join`,
        body: wireJoin(request),
        headers: { accept: MEDIA_TYPES[options.format] },
        mayRepeat: true,
        ...callOf(options),
      });
      const withSequence = sequenceOf(headers, 'sagitta-with-sequence');
      return { body, sequence: sequenceOf(headers), withSequence };
    },
    async *join(request, options) {
      const { body } = await streams.joinStream(request, { ...options, format: 'ndjson' });
      yield* decodeLines<JoinRow>(body);
    },
    async exportStream(options) {
      const { format, filter, includeValues, includeMetadata } = options;
      const { body, headers } = await transport.open({
        method: 'GET',
        path: `${root}/export`,
        query: {
          format,
          filter: filter && JSON.stringify(filter),
          include_values: includeValues,
          include_metadata: includeMetadata,
        },
        headers: { accept: MEDIA_TYPES[format] },
        mayRepeat: true,
        ...callOf(options),
      });
      const sequence = sequenceOf(headers);
      if (sequence !== undefined) return { body, sequence };
      await body.cancel();
      const detail = 'expected a header Sagitta-Sequence in the reply, found none';
      throw new SagittaClientError('unexpected_reply', detail);
    },
    async *exportAll(options) {
      const { body } = await streams.exportStream({ ...options, format: 'ndjson' });
      yield* decodeLines<StoredVector>(body);
    },
  };
  return streams;
}

/** In the names of the wire. */
export function wireJoin(request: JoinRequest) {
  return {
    with: request.with,
    top_k: request.topK,
    score_threshold: request.scoreThreshold,
    filter: request.filter,
    with_filter: request.withFilter,
    exclude_self: request.excludeSelf,
    metric: request.metric,
    include_metadata: request.includeMetadata,
  };
}

function sequenceOf(headers: Headers, name = 'sagitta-sequence'): number | undefined {
  const text = headers.get(name);
  return text === null ? undefined : Number(text);
}
