// All limits of the service, with reasons. `GET /v1/limits` returns them; an error about a limit has the
// limit and the actual value. The configuration may override the defaults.

export const DEFAULT_LIMITS = {
  /** The largest embeddings in use have 4 096 to 12 288 dimensions; this is the next power of two. */
  dimensionMax: 16_384,
  /** Named vectors of a collection: each has memory and codes of its own, also for rows that lack it. */
  namedVectorsMax: 32,
  /** Values of a record in all of its named vectors: 256 KiB, so that a segment has hundreds of rows. */
  recordValuesMax: 65_536,
  /** Sparse vectors of a collection: each has an inverted index of its own. */
  sparseVectorsMax: 32,
  /** Elements of a sparse vector, more than a document has different words; a query reads a list for each. */
  sparseElementsMax: 16_384,
  /** Vectors of a record under one name: models of whole pages make about 1 000. */
  multiVectorsMax: 2_048,
  /** Values of a multi-vector: 1 MiB, so that a segment has dozens of the largest. */
  multiValuesMax: 262_144,
  /** Vectors of a query by multi-vectors, each compared with every vector of a record: models make 32 to 128. */
  queryVectorsMax: 256,
  /** A body is parsed in memory; 64 MB is about 3 000 vectors of 1 536 floats as text. */
  bodyBytesMax: 64_000_000,
  /** Rows in one atomic JSON body; more rows should be streamed. */
  batchRowsMax: 10_000,
  /** Queries in one JSON body, or lists in one recall: one batch of the engine; more should be streamed. */
  batchQueriesMax: 1_024,
  /** A page is built in memory, with metadata and optionally values. */
  pageLimitMax: 1_000,
  pageLimitDefault: 100,
  /** Audit events that can be listed: about 5 MB, and months of an ordinary service. */
  auditEventsMax: 10_000,
  /** Matches in one page; cursors reach deeper at the same cost per page. */
  topKMax: 10_000,
  topKDefault: 10,
  /** Examples of one query: every row is scored with each, and a cursor contains them. */
  examplesMax: 64,
  /** Rankings of one fusion: each is searched. */
  fusionPartsMax: 8,
  /** Nearest vectors that a diversified query chooses from, each compared with all that are chosen. */
  diversityCandidatesMax: 1_000,
  diversityCandidatesDefault: 100,
  /** Characters of a text to embed: models read 8 192 tokens of about four characters. */
  embedCharactersMax: 32_768,
  /** A filter is evaluated per segment; 256 conditions are more than applications need. */
  filterNodesMax: 256,
  filterDepthMax: 16,
  /** Values of one `$in`, `$nin` or `$contains_*`. */
  filterValuesMax: 10_000,
  /** Characters of a field name; looking one up takes time quadratic in its dots. */
  filterPathCharactersMax: 512,
  /** Metadata paths of the index of text of a collection. */
  textFieldsMax: 16,
  /** Each is compared with every word; the longest lists in use have about 1 000. */
  textStopWordsMax: 1_000,
  textStopWordCharactersMax: 64,
  /** A query by words is typed by hand, or is a paragraph. */
  textQueryCharactersMax: 8_192,
  /** Different words of one query, each of which reads the rows that contain it. */
  textTermsMax: 256,
  /** Facets, or stats, of one request; each reads a column of all rows that pass. */
  facetsMax: 32,
  /** Values of one facet in a reply; the number of distinct values is always exact. */
  facetValuesMax: 1_000,
  facetValuesDefault: 10,
  /** Buckets of one histogram: more than a chart has pixels for. */
  histogramBucketsMax: 1_000,
  /** Characters of a `$like` or `$regex`; users write them by hand. */
  filterPatternCharactersMax: 1_000,
  /** Instructions of a compiled `$regex`, which bound the time that a character of a string takes. */
  filterPatternInstructionsMax: 1_000,
  /** Each `$regex` keeps up to 8 MB of states in every thread that evaluates it. */
  filterPatternsMax: 8,
  /** Points of one `$geo_polygon`, each of which is compared with every row in its latitudes. */
  filterPolygonPointsMax: 1_000,
  /** Ids are kept in indexes and cursors; 512 bytes are enough for most URLs. */
  vectorIdBytesMax: 512,
  /** Cached filter results: 8 KiB per segment, so 250 filters over a million rows. */
  filterCacheBytesMax: 32 * 1024 * 1024,
  /** Vectors of sorted lists, which keep four bytes of each between their pages; a million takes half a second. */
  sortedRowsMax: 16_777_216,
  /** Vectors of one projection: more points than a screen can tell apart. */
  projectionRowsMax: 200_000,
  projectionRowsDefault: 20_000,
  /** Elements of projected vectors: the products of every two take 128 MB. */
  projectionDimensionMax: 4_096,
  /** Coordinates of a projected vector: enough for what continues with them in place of the vectors. */
  projectionCoordinatesMax: 64,
  /** Neighbours of a projected vector: UMAP and its like take 15. */
  projectionNeighborsMax: 30,
  /** Metadata is meant for filters and display, not for whole documents. */
  metadataBytesMax: 40_960,
  metadataDepthMax: 8,
  /** Metadata paths per segment kept as typed columns; further paths are evaluated on the JSON. */
  metadataColumnsMax: 256,
  /** Rows of one segment, which bounds the work of a filter task. */
  segmentRowsMax: 65_536,
  /** Bytes of vectors in one segment: the unit of checkpoints, device uploads and compaction. */
  segmentValueBytesMax: 64 * 1024 * 1024,
  /** Each collection has a writer, an index and an active segment. */
  collectionsMax: 10_000,
  /** Shorter than the timeouts of gateways, so that clients get the reply. */
  requestMsMax: 30_000,
  /** How long a snapshot stays readable by cursor, in milliseconds. */
  retentionMs: 15 * 60 * 1000,
  /** How long an idempotent reply is kept, in milliseconds. */
  idempotencyMs: 24 * 60 * 60 * 1000,
  /** Queries waiting for the engine; a longer queue would only add latency. */
  queuedQueriesMax: 4_096,
  /** Writes waiting for a commit of a collection; a commit takes thousands of small writes. */
  queuedWritesMax: 16_384,
  /** Filters and large bodies waiting for a thread: at 20 ms each, 10 s of work for eight threads. */
  queuedTasksMax: 4_096,
  /** Characters of an idempotency key. */
  idempotencyKeyCharactersMax: 255,
  /** Labels and descriptions are meant for people. */
  descriptionCharactersMax: 2_000,
  labelsMax: 64,
  labelCharactersMax: 256,
  /** Reads per second of one principal: limits the effect of a runaway client on others. */
  readRateMax: 20_000,
  readBurstMax: 40_000,
  /** Vectors written per second by one principal. */
  writeRateMax: 200_000,
  writeBurstMax: 400_000,
  /** Bytes of bodies in memory, over all connections. */
  bodyBytesInFlightMax: 1_024_000_000,
  /** Bytes of replies that clients have not read yet: ten pages of 1 000 vectors of 4 096 values as text. */
  replyBytesInFlightMax: 512_000_000,
  /** A request occupies the main thread for a few milliseconds at most; this delay means overload. */
  eventLoopDelayMsMax: 1_000,
  /** Each connection takes a file descriptor and some kilobytes. */
  connectionsMax: 20_000,
  /** Half of all connections, so that one client cannot shut out the others. */
  connectionsPerAddressMax: 10_000,
  /** Milliseconds for the header of a request to arrive; slower clients block connections on purpose. */
  headerMsMax: 20_000,
  /** Milliseconds for a whole request to arrive: 64 MB at 2 Mbit/s. */
  arrivalMsMax: 300_000,
  /** Milliseconds that a client may read nothing of a waiting reply. */
  stalledMsMax: 120_000,
  /** Longer than the keep-alive of gateways (60 s), so that the gateway closes the connection. */
  keepAliveMs: 72_000,
} as const satisfies Record<string, number>;

export type Limits = { readonly [name in keyof typeof DEFAULT_LIMITS]: number };
