// The table of limits: default and reason, unit, accepted values and help of each. The settings that override the
// defaults, `GET /v1/limits` and the documentation follow it. An error about a limit has the limit and the actual value.

import { operatorNames } from './filter-operators.js';

export interface Limit {
  readonly default: number;
  readonly unit: string;
  /** What a setting may be. */
  readonly min: number;
  readonly max: number;
  readonly help: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** "$in, $nin or $contains_any". */
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
  /** Named vectors of a collection: each has memory and codes of its own, also for rows that lack it. */
  namedVectorsMax: {
    default: 32,
    unit: 'vectors',
    min: 1,
    max: 256,
    help: 'The maximum number of named vectors of a collection.',
  },
  /** Values of a record in all of its named vectors: 256 KiB, so that a segment has hundreds of rows. */
  recordValuesMax: {
    default: 65_536,
    unit: 'values',
    min: 1,
    max: 1_048_576,
    help: 'The maximum number of dimensions of all named vectors of a collection together.',
  },
  /** Sparse vectors of a collection: each has an inverted index of its own. */
  sparseVectorsMax: {
    default: 32,
    unit: 'vectors',
    min: 1,
    max: 256,
    help: 'The maximum number of sparse vectors of a collection.',
  },
  /** Elements of a sparse vector, more than a document has different words; a query reads a list for each. */
  sparseElementsMax: {
    default: 16_384,
    unit: 'elements',
    min: 1,
    max: 1_048_576,
    help: 'The maximum number of elements of a sparse vector.',
  },
  /** Vectors of a record under one name: models of whole pages make about 1 000. */
  multiVectorsMax: {
    default: 2_048,
    unit: 'vectors',
    min: 1,
    max: 65_536,
    help: 'The maximum number of vectors of a multi-vector of a record.',
  },
  /** Values of a multi-vector: 1 MiB, so that a segment has dozens of the largest. */
  multiValuesMax: {
    default: 262_144,
    unit: 'values',
    min: 1,
    max: 16_777_216,
    help: 'The maximum number of values of a multi-vector of a record.',
  },
  /** Vectors of a query by multi-vectors, each compared with every vector of a record: models make 32 to 128. */
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
  /** Queries in one JSON body, or lists in one recall: one batch of the engine; more should be streamed. */
  batchQueriesMax: {
    default: 1_024,
    unit: 'queries',
    min: 1,
    max: 65_536,
    help: 'The maximum number of queries in one JSON body, or of lists in one recall request.',
  },
  /** A page is built in memory, with metadata and optionally values. */
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
  /** Audit events that can be listed: about 5 MB, and months of an ordinary service. */
  auditEventsMax: {
    default: 10_000,
    unit: 'events',
    min: 0,
    max: 100_000,
    help: 'The number of audit events that GET /audit can list; older ones are only in the log.',
  },
  /** Matches in one page; cursors reach deeper at the same cost per page. */
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
  /** Examples of one query: every row is scored with each, and a cursor contains them. */
  examplesMax: {
    default: 64,
    unit: 'examples',
    min: 1,
    max: 1_024,
    help: 'The maximum number of examples in a query.',
  },
  /** Rankings of one fusion: each is searched. */
  fusionPartsMax: {
    default: 8,
    unit: 'parts',
    min: 2,
    max: 64,
    help: 'The maximum number of parts of a fused query.',
  },
  /** Nearest vectors that a diversified query chooses from, each compared with all that are chosen. */
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
  /** Characters of a text to embed: models read 8 192 tokens of about four characters. */
  embedCharactersMax: {
    default: 32_768,
    unit: 'characters',
    min: 1,
    max: 1_000_000,
    help: 'The maximum length of a text to embed.',
  },
  /** A filter is evaluated per segment; 256 conditions are more than applications need. */
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
  /** Characters of a field name; looking one up takes time quadratic in its dots. */
  filterPathCharactersMax: {
    default: 512,
    unit: 'characters',
    min: 1,
    max: 4_096,
    help: 'The maximum length of a field name in a filter.',
  },
  /** Metadata paths of the index of text of a collection. */
  textFieldsMax: {
    default: 16,
    unit: 'paths',
    min: 1,
    max: 256,
    help: 'The maximum number of metadata paths in the index of text of a collection.',
  },
  /** Each is compared with every word; the longest lists in use have about 1 000. */
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
  /** A query by words is typed by hand, or is a paragraph. */
  textQueryCharactersMax: {
    default: 8_192,
    unit: 'characters',
    min: 1,
    max: 1_000_000,
    help: 'The maximum length of the text of a query.',
  },
  /** Different words of one query, each of which reads the rows that contain it. */
  textTermsMax: {
    default: 256,
    unit: 'words',
    min: 1,
    max: 4_096,
    help: 'The maximum number of different words in a query.',
  },
  /** Facets, or stats, of one request; each reads a column of all rows that pass. */
  facetsMax: {
    default: 32,
    unit: 'paths',
    min: 1,
    max: 256,
    help: 'The maximum number of facets, and of stats, in one request.',
  },
  /** Values of one facet in a reply; the number of distinct values is always exact. */
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
  /** Buckets of one histogram: more than a chart has pixels for. */
  histogramBucketsMax: {
    default: 1_000,
    unit: 'buckets',
    min: 1,
    max: 100_000,
    help: 'The maximum number of buckets in one histogram.',
  },
  /** Characters of a `$like` or `$regex`; users write them by hand. */
  filterPatternCharactersMax: {
    default: 1_000,
    unit: 'characters',
    min: 1,
    max: 10_000,
    help: 'The maximum length of a pattern of $like or $regex.',
  },
  /** Instructions of a compiled `$regex`, which bound the time that a character of a string takes. */
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
    help: 'The maximum number of $regex in a filter.',
  },
  /** Points of one `$geo_polygon`, each of which is compared with every row in its latitudes. */
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
  /** Cached filter results: 8 KiB per segment, so 250 filters over a million rows. */
  filterCacheBytesMax: {
    default: 32 * 1024 * 1024,
    unit: 'bytes',
    min: 0,
    max: 64 * 1024 ** 3,
    help: 'Memory for cached filter results, over all collections; 0 disables the cache.',
  },
  /** Vectors of sorted lists, which keep four bytes of each between their pages; a million takes half a second. */
  sortedRowsMax: {
    default: 16_777_216,
    unit: 'vectors',
    min: 1,
    max: 1e9,
    help: 'The maximum number of vectors of a sorted list, and of all whose order is kept between pages.',
  },
  /** Vectors of one projection: more points than a screen can tell apart. */
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
  /** Elements of projected vectors: the products of every two take 128 MB. */
  projectionDimensionMax: {
    default: 4_096,
    unit: 'elements',
    min: 1,
    max: 16_384,
    help: 'The maximum dimension of vectors to project; a projection takes eight bytes of memory for every two elements.',
  },
  /** Coordinates of a projected vector: enough for what continues with them in place of the vectors. */
  projectionCoordinatesMax: {
    default: 64,
    unit: 'coordinates',
    min: 2,
    max: 256,
    help: 'The maximum dimensions of a projection.',
  },
  /** Neighbours of a projected vector: UMAP and its like take 15. */
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
  /** Metadata paths per segment kept as typed columns; further paths are evaluated on the JSON. */
  metadataColumnsMax: {
    default: 256,
    unit: 'columns',
    min: 0,
    max: 4_096,
    help: 'The maximum number of metadata paths that a segment stores as columns.',
  },
  /** Rows of one segment, which bounds the work of a filter task. */
  segmentRowsMax: {
    default: 65_536,
    unit: 'rows',
    min: 64,
    max: 16_777_216,
    help: 'The number of rows at which a segment is sealed.',
  },
  /** Bytes of vectors in one segment: the unit of checkpoints, device uploads and compaction. */
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
  /** How long a snapshot stays readable by cursor, in milliseconds. */
  retentionMs: {
    default: 15 * 60 * 1000,
    unit: 'milliseconds',
    min: 1_000,
    max: 30 * DAY_MS,
    help: 'How long a cursor is valid.',
  },
  /** How long an idempotent reply is kept, in milliseconds. */
  idempotencyMs: {
    default: DAY_MS,
    unit: 'milliseconds',
    min: 1_000,
    max: 30 * DAY_MS,
    help: 'How long an idempotency key is remembered.',
  },
  /** Each takes about 300 bytes of memory. Refused rather than forgotten, since a retry must not happen twice. */
  idempotencyKeysMax: {
    default: 1_000_000,
    unit: 'keys',
    min: 1,
    max: 1_000_000_000,
    help: 'The maximum number of idempotency keys that are remembered. Requests with further ones are refused with 429 until the oldest expire.',
  },
  /** Queries waiting for the engine; a longer queue would only add latency. */
  queuedQueriesMax: {
    default: 4_096,
    unit: 'queries',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of queries that wait for the engine.',
  },
  /** Writes waiting for a commit of a collection; a commit takes thousands of small writes. */
  queuedWritesMax: {
    default: 16_384,
    unit: 'writes',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of writes per collection that wait for a commit.',
  },
  /** Filters and large bodies waiting for a thread: at 20 ms each, 10 s of work for eight threads. */
  queuedTasksMax: {
    default: 4_096,
    unit: 'tasks',
    min: 1,
    max: 1_000_000,
    help: 'The maximum number of tasks (filters, large bodies) that wait for a worker thread.',
  },
  /** Characters of an idempotency key. */
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
  /** Reads per second of one principal: limits the effect of a runaway client on others. */
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
  /** Vectors written per second by one principal. */
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
  /** Bytes of bodies in memory, over all connections. */
  bodyBytesInFlightMax: {
    default: 1_024_000_000,
    unit: 'bytes',
    min: 1_048_576,
    max: 1e12,
    help: 'The total size of request bodies that are being received or processed.',
  },
  /** Bytes of replies that clients have not read yet: ten pages of 1 000 vectors of 4 096 values as text. */
  replyBytesInFlightMax: {
    default: 512_000_000,
    unit: 'bytes',
    min: 1_048_576,
    max: 1e12,
    help: 'The total size of replies that clients have not read yet.',
  },
  /** A request occupies the main thread for a few milliseconds at most; this delay means overload. */
  eventLoopDelayMsMax: {
    default: 1_000,
    unit: 'milliseconds',
    min: 10,
    max: 60_000,
    help: 'The event loop delay above which requests are refused as overload.',
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
  /** Milliseconds for the header of a request to arrive; slower clients block connections on purpose. */
  headerMsMax: {
    default: 20_000,
    unit: 'milliseconds',
    min: 100,
    max: 600_000,
    help: 'The maximum time for receiving the headers of a request.',
  },
  /** Milliseconds for a whole request to arrive: 64 MB at 2 Mbit/s. */
  arrivalMsMax: {
    default: 300_000,
    unit: 'milliseconds',
    min: 1_000,
    max: 3_600_000,
    help: 'The maximum time for receiving a whole request; streams may take longer.',
  },
  /** Milliseconds that a client may read nothing of a waiting reply. */
  stalledMsMax: {
    default: 120_000,
    unit: 'milliseconds',
    min: 1_000,
    max: 3_600_000,
    help: 'How long a client may neither send nor read before its request is aborted.',
  },
  /** Longer than the keep-alive of gateways (60 s), so that the gateway closes the connection. */
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
