// The table of limits, with the default, unit, accepted values and help of each; comments give the reasons. The
// settings that override them, `GET /v1/limits` and the documentation derive from it. Errors about a limit state both
// the limit and the actual value.

import { operatorNames } from './filter-operators.js';

export interface Limit {
  readonly default: number;
  readonly unit: string;
  /** Bounds of the setting. */
  readonly min: number;
  readonly max: number;
  readonly help: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** The operators that take lists, as "$in, $nin or $contains_any". */
const LISTS = operatorNames(({ takes }) => takes === 'values')
  .join(', ')
  .replace(/, ([^,]*)$/, ' or $1');

export const LIMITS = {
  /** The largest embeddings in use have 4 096 to 12 288 dimensions; this is the next power of two. */
  dimensionMax: {
    default: 16_384,
    unit: 'elements',
    min: 1,
    max: 16_384,
    help: 'The maximum dimension of a vector.',
  },
  /** Each named vector of a collection takes memory and codes, even for rows without it. */
  namedVectorsMax: {
    default: 32,
    unit: 'vectors',
    min: 1,
    max: 256,
    help: 'The maximum number of named vectors of a collection.',
  },
  /** Total values of the named vectors in a record: 256 KiB, so that a segment holds hundreds of rows. */
  recordValuesMax: {
    default: 65_536,
    unit: 'values',
    min: 1,
    max: 1_048_576,
    help: 'The maximum number of dimensions of all named vectors of a collection together.',
  },
  /** Each sparse vector of a collection has its own inverted index. */
  sparseVectorsMax: {
    default: 32,
    unit: 'vectors',
    min: 1,
    max: 256,
    help: 'The maximum number of sparse vectors of a collection.',
  },
  /** More than a document has distinct words; a query reads one list for each element. */
  sparseElementsMax: {
    default: 16_384,
    unit: 'elements',
    min: 1,
    max: 1_048_576,
    help: 'The maximum number of elements of a sparse vector.',
  },
  /** Vectors of a record under one name; models of whole pages produce about 1 000. */
  multiVectorsMax: {
    default: 2_048,
    unit: 'vectors',
    min: 1,
    max: 65_536,
    help: 'The maximum number of vectors of a multi-vector of a record.',
  },
  /** 1 MiB, so that a segment holds dozens of the largest multi-vectors. */
  multiValuesMax: {
    default: 262_144,
    unit: 'values',
    min: 1,
    max: 16_777_216,
    help: 'The maximum number of values of a multi-vector of a record.',
  },
  /** Each vector of the query is compared with every vector of a record; models produce 32 to 128. */
  queryVectorsMax: {
    default: 256,
    unit: 'vectors',
    min: 1,
    max: 4_096,
    help: 'The maximum number of vectors of a query by a multi-vector.',
  },
  /** A body is parsed in memory; 64 MB is about 3 000 vectors of 1 536 floats as text. */
  bodyBytesMax: {
    default: 64_000_000,
    unit: 'bytes',
    min: 1_024,
    max: 512_000_000,
    help: 'The maximum size of a JSON body.',
  },
  /** Rows in one atomic JSON body; more rows should be streamed. */
  batchRowsMax: {
    default: 10_000,
    unit: 'vectors',
    min: 1,
    max: 100_000,
    help: 'The maximum number of vectors in one JSON body.',
  },
  /** One batch of the engine; more queries should be streamed. */
  batchQueriesMax: {
    default: 1_024,
    unit: 'queries',
    min: 1,
    max: 65_536,
    help: 'The maximum number of queries in one JSON body, or of lists in one recall request.',
  },
  /** A page is built in memory, with metadata and possibly values. */
  pageLimitMax: {
    default: 1_000,
    unit: 'records',
    min: 1,
    max: 10_000,
    help: 'The maximum page size.',
  },
  pageLimitDefault: {
    default: 100,
    unit: 'records',
    min: 1,
    max: 10_000,
    help: 'The page size of requests without limit.',
  },
  /** About 5 MB of audit events, which is months of ordinary operation. */
  auditEventsMax: {
    default: 10_000,
    unit: 'events',
    min: 0,
    max: 100_000,
    help: 'The number of audit events that GET /audit can list; older ones are only in the log.',
  },
  /** Deeper results are available by cursor at the same cost per page. */
  topKMax: {
    default: 10_000,
    unit: 'matches',
    min: 1,
    max: 10_000,
    help: 'The maximum top_k of a query.',
  },
  topKDefault: {
    default: 10,
    unit: 'matches',
    min: 1,
    max: 10_000,
    help: 'The top_k of queries that do not set it.',
  },
  /** Every row is scored against each example, and cursors contain them. */
  examplesMax: {
    default: 64,
    unit: 'examples',
    min: 1,
    max: 1_024,
    help: 'The maximum number of examples in a query.',
  },
  /** Each part of a fusion is a separate search. */
  fusionPartsMax: {
    default: 8,
    unit: 'parts',
    min: 2,
    max: 64,
    help: 'The maximum number of parts of a fused query.',
  },
  /** Each candidate is compared with every vector that was chosen before. */
  diversityCandidatesMax: {
    default: 1_000,
    unit: 'vectors',
    min: 1,
    max: 10_000,
    help: 'The maximum number of candidates of a diversified query.',
  },
  diversityCandidatesDefault: {
    default: 100,
    unit: 'vectors',
    min: 1,
    max: 10_000,
    help: 'The number of candidates of diversified queries that do not set it.',
  },
  /** Models read 8 192 tokens of about four characters. */
  embedCharactersMax: {
    default: 32_768,
    unit: 'characters',
    min: 1,
    max: 1_000_000,
    help: 'The maximum length of a text to embed.',
  },
  /** A filter is evaluated on each segment; 256 conditions are more than applications need. */
  filterNodesMax: {
    default: 256,
    unit: 'conditions',
    min: 1,
    max: 10_000,
    help: 'The maximum number of conditions in a filter.',
  },
  filterDepthMax: {
    default: 16,
    unit: 'levels',
    min: 1,
    max: 32,
    help: 'The maximum nesting depth of $and, $or and $not.',
  },
  filterValuesMax: {
    default: 10_000,
    unit: 'values',
    min: 1,
    max: 1_000_000,
    help: `The maximum number of values in one ${LISTS}.`,
  },
  /** Looking up a field name takes time quadratic in its dots. */
  filterPathCharactersMax: {
    default: 512,
    unit: 'characters',
    min: 1,
    max: 4_096,
    help: 'The maximum length of a field name in a filter.',
  },
  textFieldsMax: {
    default: 16,
    unit: 'paths',
    min: 1,
    max: 256,
    help: 'The maximum number of metadata paths in the text index of a collection.',
  },
  /** Every word is compared with the stop words; the longest lists in use have about 1 000. */
  textStopWordsMax: {
    default: 1_000,
    unit: 'words',
    min: 0,
    max: 100_000,
    help: 'The maximum number of stop words of a collection.',
  },
  textStopWordCharactersMax: {
    default: 64,
    unit: 'characters',
    min: 1,
    max: 1_024,
    help: 'The maximum length of a stop word.',
  },
  /** Word queries are typed by hand or copied from a paragraph. */
  textQueryCharactersMax: {
    default: 8_192,
    unit: 'characters',
    min: 1,
    max: 1_000_000,
    help: 'The maximum length of the text of a query.',
  },
  /** Each distinct word of a query reads the rows that contain it. */
  textTermsMax: {
    default: 256,
    unit: 'words',
    min: 1,
    max: 4_096,
    help: 'The maximum number of different words in a query.',
  },
  /** Each facet, and each field of statistics, reads a column of all matching rows. */
  facetsMax: {
    default: 32,
    unit: 'paths',
    min: 1,
    max: 256,
    help: 'The maximum number of facets, and of stats, in one request.',
  },
  /** Only the listed values are bounded; the number of distinct values is always exact. */
  facetValuesMax: {
    default: 1_000,
    unit: 'values',
    min: 1,
    max: 100_000,
    help: 'The maximum number of values of one facet.',
  },
  facetValuesDefault: {
    default: 10,
    unit: 'values',
    min: 1,
    max: 100_000,
    help: 'The number of values of facets that do not set limit.',
  },
  /** More buckets than a chart has pixels. */
  histogramBucketsMax: {
    default: 1_000,
    unit: 'buckets',
    min: 1,
    max: 100_000,
    help: 'The maximum number of buckets in one histogram.',
  },
  /** Users write patterns by hand. */
  filterPatternCharactersMax: {
    default: 1_000,
    unit: 'characters',
    min: 1,
    max: 10_000,
    help: 'The maximum length of a pattern of $like or $regex.',
  },
  /** The instructions of a compiled `$regex` bound the time per character. */
  filterPatternInstructionsMax: {
    default: 1_000,
    unit: 'instructions',
    min: 1,
    max: 20_000,
    help: 'The maximum size of a compiled $regex, in which repetitions are written out.',
  },
  /** Each `$regex` keeps up to 8 MB of states in every thread that evaluates it. */
  filterPatternsMax: {
    default: 8,
    unit: 'patterns',
    min: 1,
    max: 16,
    help: 'The maximum number of $regex patterns in a filter.',
  },
  /** Each point of a `$geo_polygon` is compared with every row within its latitudes. */
  filterPolygonPointsMax: {
    default: 1_000,
    unit: 'points',
    min: 3,
    max: 100_000,
    help: 'The maximum number of points of one $geo_polygon, holes included.',
  },
  /** Ids are kept in indexes and cursors; 512 bytes are enough for most URLs. Longer ones cannot be stored. */
  vectorIdBytesMax: {
    default: 512,
    unit: 'bytes',
    min: 26,
    max: 512,
    help: 'The maximum length of a vector id.',
  },
  /** A cached filter result takes 8 KiB per segment, so this holds 250 filters over a million rows. */
  filterCacheBytesMax: {
    default: 32 * 1024 * 1024,
    unit: 'bytes',
    min: 0,
    max: 64 * 1024 ** 3,
    help: 'Memory for cached filter results, over all collections; 0 disables the cache.',
  },
  /** Sorted lists keep four bytes per vector between pages; sorting a million takes half a second. */
  sortedRowsMax: {
    default: 16_777_216,
    unit: 'vectors',
    min: 1,
    max: 1e9,
    help: 'The maximum number of vectors in a sorted list, and in all lists whose order is kept between pages.',
  },
  /** More points than can be told apart on a screen. */
  projectionRowsMax: {
    default: 200_000,
    unit: 'vectors',
    min: 1,
    max: 10_000_000,
    help: 'The maximum sample of a projection.',
  },
  projectionRowsDefault: {
    default: 20_000,
    unit: 'vectors',
    min: 1,
    max: 10_000_000,
    help: 'The sample of projections that do not set sample.',
  },
  /** The matrix of products takes 128 MB. */
  projectionDimensionMax: {
    default: 4_096,
    unit: 'elements',
    min: 1,
    max: 16_384,
    help: 'The maximum dimension of vectors to project; a projection takes eight bytes of memory for every two elements.',
  },
  /** Enough for computations that continue with the projection instead of the vectors. */
  projectionCoordinatesMax: {
    default: 64,
    unit: 'coordinates',
    min: 2,
    max: 256,
    help: 'The maximum dimensions of a projection.',
  },
  /** UMAP and similar methods take 15. */
  projectionNeighborsMax: {
    default: 30,
    unit: 'vectors',
    min: 0,
    max: 1_000,
    help: 'The maximum number of neighbours of a projected vector.',
  },
  /** Metadata is meant for filters and display, not for whole documents. */
  metadataBytesMax: {
    default: 40_960,
    unit: 'bytes',
    min: 2,
    max: 1_048_576,
    help: 'The maximum size of the metadata of one vector, as sent.',
  },
  metadataDepthMax: {
    default: 8,
    unit: 'levels',
    min: 1,
    max: 32,
    help: 'The maximum nesting depth of metadata.',
  },
  /** Further metadata paths of a segment are evaluated on the JSON. */
  metadataColumnsMax: {
    default: 256,
    unit: 'columns',
    min: 0,
    max: 4_096,
    help: 'The maximum number of metadata paths that a segment stores as columns.',
  },
  /** Bounds the work of one filter task. */
  segmentRowsMax: {
    default: 65_536,
    unit: 'rows',
    min: 64,
    max: 16_777_216,
    help: 'The number of rows at which a segment is sealed.',
  },
  /** A segment is the unit of checkpoints, device uploads and compaction. */
  segmentValueBytesMax: {
    default: 64 * 1024 * 1024,
    unit: 'bytes',
    min: 65_536,
    max: 2_147_483_648,
    help: 'The size of the vector values at which a segment is sealed.',
  },
  /** Each collection has a writer, an index and an active segment. */
  collectionsMax: {
    default: 10_000,
    unit: 'collections',
    min: 1,
    max: 100_000,
    help: 'The maximum number of collections.',
  },
  /** Shorter than the timeouts of gateways, so that clients get the reply. */
  requestMsMax: {
    default: 30_000,
    unit: 'milliseconds',
    min: 100,
    max: 3_600_000,
    help: 'The maximum duration of a request.',
  },
  retentionMs: {
    default: 15 * 60 * 1000,
    unit: 'milliseconds',
    min: 1_000,
    max: 30 * DAY_MS,
    help: 'How long a cursor is valid.',
  },
  idempotencyMs: {
    default: DAY_MS,
    unit: 'milliseconds',
    min: 1_000,
    max: 30 * DAY_MS,
    help: 'How long an idempotency key is remembered.',
  },
  /**
   * Each takes about 300 bytes of memory. Further keys are refused and old ones never forgotten early, because a retry
   * must not run twice.
   */
  idempotencyKeysMax: {
    default: 1_000_000,
    unit: 'keys',
    min: 1,
    max: 1_000_000_000,
    help: 'The maximum number of idempotency keys that are remembered. Further keys are refused with 429 until the oldest expire.',
  },
  /** Two seconds of work if each takes half a millisecond of the main thread. */
  queuedRequestsMax: {
    default: 4_096,
    unit: 'requests',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of requests that wait until their work begins, half of them of one principal or, without credentials, of one address.',
  },
  /** A longer queue would only add latency. */
  queuedQueriesMax: {
    default: 4_096,
    unit: 'queries',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of queries that wait for the engine.',
  },
  /** One commit takes thousands of small writes. */
  queuedWritesMax: {
    default: 16_384,
    unit: 'writes',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of writes per collection that wait for a commit.',
  },
  /** At 20 ms each, this is 10 s of work for eight threads. */
  queuedTasksMax: {
    default: 4_096,
    unit: 'tasks',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of tasks (filters, large bodies) that wait for a worker thread.',
  },
  idempotencyKeyCharactersMax: {
    default: 255,
    unit: 'characters',
    min: 1,
    max: 1_024,
    help: 'The maximum length of an idempotency key.',
  },
  /** Labels and descriptions are meant for people. */
  descriptionCharactersMax: {
    default: 2_000,
    unit: 'characters',
    min: 0,
    max: 100_000,
    help: 'The maximum length of a description.',
  },
  labelsMax: {
    default: 64,
    unit: 'labels',
    min: 0,
    max: 1_024,
    help: 'The maximum number of labels on a collection.',
  },
  labelCharactersMax: {
    default: 256,
    unit: 'characters',
    min: 1,
    max: 4_096,
    help: 'The maximum length of the name or value of a label.',
  },
  /** Limits the effect of a runaway client on others. */
  readRateMax: {
    default: 20_000,
    unit: 'queries per second',
    min: 0,
    max: 1e9,
    help: 'The read rate limit per principal: queries, or vectors read by id; 0 disables it.',
  },
  readBurstMax: {
    default: 40_000,
    unit: 'queries',
    min: 1,
    max: 1e9,
    help: 'The read burst limit per principal.',
  },
  writeRateMax: {
    default: 200_000,
    unit: 'vectors per second',
    min: 0,
    max: 1e9,
    help: 'The write rate limit per principal; 0 disables it.',
  },
  writeBurstMax: {
    default: 400_000,
    unit: 'vectors',
    min: 1,
    max: 1e9,
    help: 'The write burst limit per principal.',
  },
  /** Counts bodies in memory over all connections. */
  bodyBytesInFlightMax: {
    default: 1_024_000_000,
    unit: 'bytes',
    min: 1_048_576,
    max: 1e12,
    help: 'The total size of request bodies that are being received or processed.',
  },
  /** Ten pages of 1 000 vectors of 4 096 values as text. */
  replyBytesInFlightMax: {
    default: 512_000_000,
    unit: 'bytes',
    min: 1_048_576,
    max: 1e12,
    help: 'The total size of replies that clients have not read yet.',
  },
  /** Each connection takes a file descriptor and some kilobytes. */
  connectionsMax: {
    default: 20_000,
    unit: 'connections',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of open connections.',
  },
  /** Half of all connections, so that one client cannot shut out the others. */
  connectionsPerAddressMax: {
    default: 10_000,
    unit: 'connections',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of open connections per client address (for IPv6, per /64 network). Loopback addresses and trusted proxies are exempt.',
  },
  /** Slower clients occupy connections on purpose. */
  headerMsMax: {
    default: 20_000,
    unit: 'milliseconds',
    min: 100,
    max: 600_000,
    help: 'The maximum time for receiving the headers of a request.',
  },
  /** Enough for 64 MB at 2 Mbit/s. */
  arrivalMsMax: {
    default: 300_000,
    unit: 'milliseconds',
    min: 1_000,
    max: 3_600_000,
    help: 'The maximum time for receiving a whole request; streams may take longer.',
  },
  stalledMsMax: {
    default: 120_000,
    unit: 'milliseconds',
    min: 1_000,
    max: 3_600_000,
    help: 'How long a client may neither send nor read before its request is aborted.',
  },
  /** Longer than the keep-alive of gateways (60 s), so that the gateway closes the connection first. */
  keepAliveMs: {
    default: 72_000,
    unit: 'milliseconds',
    min: 0,
    max: 3_600_000,
    help: 'How long an idle connection is kept open.',
  },
} as const satisfies Record<string, Limit>;

export type LimitName = keyof typeof LIMITS;
export type Limits = { readonly [name in LimitName]: number };

export const DEFAULT_LIMITS = Object.fromEntries(
  Object.entries<Limit>(LIMITS).map(([name, limit]) => [name, limit.default]),
) as Limits;
