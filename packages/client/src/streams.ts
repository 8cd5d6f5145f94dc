// The methods of one collection that send or receive streams of Arrow or NDJSON bytes; arrow.ts encodes
// and decodes Arrow. Requests are retried until the reply begins. A stream that is truncated, or whose
// last NDJSON line is `{"error": …}`, always ends in an error.

import type { JsonObject, Metric } from '../../../src/common/types.js';
import { wireNames } from '../../../src/common/wire-names.js';
import { encodeFilter, encodeRequestJson } from './encode-json.js';
import { noteCommitted, SagittaClientError } from './error.js';
import type { Filter } from './filter.js';
import { requireKnown } from './known-options.js';
import { type CallOptions, callOptions, type ProgressOptions, type Requests } from './requests.js';
import { isServerFailure } from './retry.js';
import {
  decodeLines,
  MEDIA_TYPES,
  openStream,
  type StreamFormat,
  type StreamReply,
  sequenceOf,
} from './stream-reply.js';
import type {
  IncludeMetadata,
  JoinRow,
  PatchInput,
  StoredVector,
  VectorInput,
  WriteMode,
  WriteStreamReply,
} from './types.js';
import { type ByteSource, openResendable, type Resendable, requireIterable } from './upload.js';
import { wireVector } from './values.js';

export interface WriteStreamOptions<Mode = WriteMode> extends CallOptions {
  /** `upsert` when absent. */
  readonly mode?: Mode;
  /**
   * Identifies the stream, so that it can be sent again after a broken connection, even by another run of your program,
   * and the server skips the durable rows. Generated when absent. Only a source that is a function is sent again.
   */
  readonly idempotencyKey?: string;
  /**
   * For large imports into a cluster: the node that receives the stream turns its rows into segment files itself, so
   * that several nodes can take streams at once. Only for the mode `upsert` and streams of about 64 MB. There is no
   * idempotency key: a broken stream is sent again from its first row, so every row should have an id.
   */
  readonly bulk?: boolean;
}

export interface WriteBytesOptions extends WriteStreamOptions<WriteMode | 'patch'> {
  readonly format: 'arrow' | 'ndjson';
  /** Arrow only: the id column; `id` when absent. */
  readonly idColumn?: string;
  /** Arrow only: the vector column; the first of `values`, `vector` and `embedding` when absent. */
  readonly vectorColumn?: string;
}

export interface QueryStreamOptions<Metadata extends object = JsonObject> extends CallOptions {
  /** Format of the reply; `arrow` when absent. */
  readonly format?: StreamFormat;
  /** Used for rows without their own `top_k`; 10 when absent. */
  readonly topK?: number;
  readonly filter?: Filter<Metadata>;
  /** The named vector to search, instead of the unnamed one. */
  readonly using?: string;
  readonly metric?: Metric;
  readonly scoreThreshold?: number;
  /** True for all metadata, or the paths to include. */
  readonly includeMetadata?: IncludeMetadata<Metadata>;
  readonly includeValues?: boolean;
  readonly minSequence?: number;
  /** The vector column; the first of `vector`, `values` and `embedding` when absent. */
  readonly vectorColumn?: string;
  /** Whether unknown columns are ignored; otherwise they are an error. */
  readonly ignoreColumns?: boolean;
}

/** At least one of `topK` and `scoreThreshold` is required. */
export interface JoinRequest<Metadata extends object = JsonObject> {
  /** The collection to search; this one when absent. */
  readonly with?: string;
  /** The named vector to search with, instead of the unnamed one. */
  readonly using?: string;
  /** The named vector to search, instead of the unnamed one. */
  readonly withUsing?: string;
  readonly topK?: number;
  readonly scoreThreshold?: number;
  /** Selects the rows of this collection to join. */
  readonly filter?: Filter<Metadata>;
  /** Selects the rows to search. */
  readonly withFilter?: JsonObject;
  /** The number of rows of this collection to join; all when absent. */
  readonly sample?: number;
  /** The number of rows to search. In a self-join, an equal `sample` selects the same rows. */
  readonly withSample?: number;
  /** Selects different samples; 0 when absent. */
  readonly seed?: number;
  /** Whether a row is excluded from its own matches; true by default in a self-join. */
  readonly excludeSelf?: boolean;
  /** Returns each pair once; only for a self-join without `topK`. */
  readonly unorderedPairs?: boolean;
  readonly metric?: Metric;
  readonly includeMetadata?: boolean;
}

export interface ExportOptions<Metadata extends object = JsonObject> extends CallOptions {
  readonly filter?: Filter<Metadata>;
  /** The number of rows, chosen by hashes of their ids. */
  readonly sample?: number;
  /** Selects a different sample; 0 when absent. */
  readonly seed?: number;
  /** True when absent. */
  readonly includeValues?: boolean;
  /** True when absent. */
  readonly includeMetadata?: boolean;
}

export interface ColumnExportOptions<Metadata extends object = JsonObject>
  extends ExportOptions<Metadata> {
  /**
   * `columns` returns a typed column for each metadata path, in Arrow and Parquet only; `text`, the
   * default, returns one column of JSON text.
   */
  readonly metadata?: 'text' | 'columns';
}

export interface JoinReply extends StreamReply {
  /** Sequence of the searched collection's snapshot. */
  readonly withSequence: number | undefined;
  /** The number of rows that are joined. */
  readonly rowCount: number | undefined;
}

export interface Streams<Metadata extends object = JsonObject> {
  /**
   * Writes a stream of bytes in ingest batches with bounded memory on both sides: at most one batch is
   * read ahead of the batch that is being committed. If the source is a *function* that reopens the same
   * bytes, a broken stream is retried under one idempotency key, and the server skips the durable rows.
   * `committedCount` of an error counts the durable rows. Errors of the source are rethrown.
   */
  writeStream(
    source: Resendable<ByteSource>,
    options: WriteBytesOptions,
  ): Promise<WriteStreamReply>;
  /** Like `writeStream`, for changes of existing vectors, which are sent as NDJSON. */
  writeAll(
    source: Resendable<Iterable<PatchInput<Metadata>> | AsyncIterable<PatchInput<Metadata>>>,
    options: WriteStreamOptions<'patch'> & { readonly mode: 'patch' },
  ): Promise<WriteStreamReply>;
  /** Like `writeStream`, for single vectors, which are sent as NDJSON. */
  writeAll(
    source: Resendable<Iterable<VectorInput<Metadata>> | AsyncIterable<VectorInput<Metadata>>>,
    options?: WriteStreamOptions,
  ): Promise<WriteStreamReply>;
  /**
   * Sends an Arrow stream with one query per row. Results arrive in the same order. Read them while the
   * queries are still being sent: the server stops reading queries when results pile up.
   */
  queryStream(
    source: Resendable<ByteSource>,
    options?: QueryStreamOptions<Metadata>,
  ): Promise<StreamReply>;
  /** The nearest neighbours of every row, as bytes. */
  joinStream(
    request: JoinRequest<Metadata>,
    options: CallOptions & { readonly format: StreamFormat },
  ): Promise<JoinReply>;
  /** The nearest neighbours of every row, one row at a time in insertion order. */
  join(request: JoinRequest<Metadata>, options?: ProgressOptions): AsyncIterable<JoinRow>;
  /** Every row of one snapshot as bytes, in insertion order. */
  exportStream(
    options: ColumnExportOptions<Metadata> & { readonly format: StreamFormat },
  ): Promise<StreamReply & { readonly sequence: number }>;
  /** Every row of one snapshot, one at a time in insertion order. */
  exportAll(options?: ExportOptions<Metadata>): AsyncIterable<StoredVector<Metadata>>;
}

// Long because it is one object of independent methods.
export function createStreams({ transport }: Requests, root: string): Streams {
  const streams: Streams = {
    async writeStream(source, options) {
      const { format, mode, idColumn, vectorColumn, bulk } = options;
      // A source that cannot be reopened needs a key too, to ask the server which rows are durable.
      const key = options.idempotencyKey ?? (bulk ? undefined : crypto.randomUUID());
      const request = {
        method: 'POST',
        path: `${root}/vectors`,
        query: wireNames({ mode, idColumn, vectorColumn, bulk }),
        headers: key === undefined ? {} : { 'idempotency-key': key },
        ...callOptions(options, Object.keys(WRITE)),
      } as const;
      const contentType = MEDIA_TYPES[format];
      const isIdempotent = typeof source === 'function';
      try {
        const stream = { source, contentType };
        return (await transport.send<WriteStreamReply>({ ...request, stream, isIdempotent })).body;
      } catch (error) {
        const isUnknown = error instanceof SagittaClientError && error.committedCount === undefined;
        if (!isUnknown || !isServerFailure(error) || key === undefined) throw error;
        // Resend a stream that is cut off in its first row: it writes nothing, and its error counts the rows of earlier
        // attempts.
        const stream = { source: () => [CUT_OFF[format]], contentType };
        await transport.send({ ...request, stream, isIdempotent: true }).catch((found: unknown) => {
          if (!(found instanceof SagittaClientError) || found.committedCount === undefined) return;
          const { committedCount, committedCountAtLeast, sequence } = found;
          noteCommitted(error, { committedCount, committedCountAtLeast, sequence });
        });
        throw error;
      }
    },
    writeAll: async (
      source: Resendable<Iterable<Row> | AsyncIterable<Row>>,
      options: WriteStreamOptions<WriteMode | 'patch'> = {},
    ) => streams.writeStream(vectorLines(source), { ...options, format: 'ndjson' }),
    async queryStream(source, { format = 'arrow', ...options } = {}) {
      const { body, sequence } = await openStream(transport, format, {
        method: 'POST',
        path: `${root}/query/batch`,
        query: parametersOf(options),
        stream: { source, contentType: MEDIA_TYPES.arrow },
        ...callOptions(options, Object.keys(QUERY)),
      });
      return { body, sequence };
    },
    async joinStream(request, { format, ...options }) {
      const { body, sequence, headers } = await openStream(transport, format, {
        method: 'POST',
        path: `${root}/join`,
        body: wireJoin(request),
        ...callOptions(options, ['format']),
      });
      const withSequence = sequenceOf(headers, 'sagitta-with-sequence');
      const rowCount = sequenceOf(headers, 'sagitta-row-count');
      return { body, sequence, withSequence, rowCount };
    },
    async *join(request, { onProgress = () => undefined, ...options } = {}) {
      const { body, rowCount = 0 } = await streams.joinStream(request, {
        ...options,
        format: 'ndjson',
      });
      let readCount = 0;
      onProgress(readCount, rowCount);
      for await (const row of decodeLines<JoinRow>(body, transport.parse)) {
        onProgress(++readCount, rowCount);
        yield row;
      }
    },
    async exportStream({ format, ...options }) {
      const { body, sequence } = await openStream(transport, format, {
        method: 'GET',
        path: `${root}/export`,
        query: { format, ...parametersOf(options) },
        ...callOptions(options, Object.keys(EXPORT)),
      });
      if (sequence !== undefined) return { body, sequence };
      await body.cancel();
      const detail = 'the reply has no Sagitta-Sequence header';
      throw new SagittaClientError('unexpected_reply', detail);
    },
    async *exportAll(options) {
      const { body } = await streams.exportStream({ ...options, format: 'ndjson' });
      yield* decodeLines<StoredVector>(body, transport.parse);
    },
  };
  return streams;
}

/** The first bytes of a stream, which end before its first row. */
const CUT_OFF = {
  arrow: Uint8Array.of(0xff, 0xff, 0xff, 0xff),
  ndjson: Uint8Array.of(0x7b),
} as const;

/** The names of each method's own options, to reject unknown ones. */
const WRITE: NamesOf<WriteBytesOptions> = {
  mode: true,
  idempotencyKey: true,
  bulk: true,
  format: true,
  idColumn: true,
  vectorColumn: true,
};
const QUERY: NamesOf<QueryStreamOptions> = {
  format: true,
  topK: true,
  filter: true,
  using: true,
  metric: true,
  scoreThreshold: true,
  includeMetadata: true,
  includeValues: true,
  minSequence: true,
  vectorColumn: true,
  ignoreColumns: true,
};
const EXPORT: NamesOf<ColumnExportOptions> = {
  filter: true,
  sample: true,
  seed: true,
  includeValues: true,
  includeMetadata: true,
  metadata: true,
};
const JOIN: NamesOf<JoinRequest> = {
  with: true,
  using: true,
  withUsing: true,
  topK: true,
  scoreThreshold: true,
  filter: true,
  withFilter: true,
  sample: true,
  withSample: true,
  seed: true,
  excludeSelf: true,
  unorderedPairs: true,
  metric: true,
  includeMetadata: true,
};

/** The options of a stream as query parameters, without those of every call. */
function parametersOf({ signal, timeoutMs, ...rest }: QueryStreamOptions | ExportOptions) {
  return wireNames({ ...rest, filter: encodeFilter(rest.filter) });
}

type NamesOf<Options> = Readonly<Record<Exclude<keyof Options, keyof CallOptions>, true>>;

/** The JSON body of a join. */
export function wireJoin(request: JoinRequest) {
  requireKnown(request, Object.keys(JOIN));
  return wireNames(request);
}

type Row = VectorInput | PatchInput;

/** The vectors as NDJSON, which can be sent again if the source can. */
function vectorLines(
  source: Resendable<Iterable<Row> | AsyncIterable<Row>>,
): Resendable<ByteSource> {
  const open = () =>
    encodeVectorLines(
      requireIterable(
        openResendable(source),
        "an iterable of vectors such as [{ id: 'a', values: [0.5, 1] }], or a function that returns one",
      ),
    );
  return typeof source === 'function' ? open : open();
}

/** Lines are collected into chunks of this size; sending each line alone would cost more than its encoding. */
const CHUNK_CHARACTERS = 65_536;

async function* encodeVectorLines(
  vectors: Iterable<Row> | AsyncIterable<Row>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  let text = '';
  let count = 0;
  for await (const vector of vectors) {
    const pointer = `/${count++}`;
    text += `${encodeRequestJson(wireVector(vector, pointer), pointer)}\n`;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield encoder.encode(text);
    text = '';
  }
  if (text !== '') yield encoder.encode(text);
}
