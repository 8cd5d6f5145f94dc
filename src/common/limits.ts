// Every bound of the service, with its reason. `GET /v1/limits` returns these; an error about a
// bound carries the bound and what was found. The configuration may override the defaults.

export const DEFAULT_LIMITS = {
  /** The widest embeddings in use have 4 096 to 12 288 dimensions; 64 KiB a row is the next power. */
  dimensionMax: 16_384,
  /** A body is parsed in memory; 64 MB is about 3 000 vectors of 1 536 floats as text. */
  bodyBytesMax: 64_000_000,
  /** Rows in one atomic JSON body: more belongs into a stream. */
  batchRowsMax: 10_000,
  /** Queries in one JSON body, or lists in one recall: what the engine takes at once. More make a stream. */
  batchQueriesMax: 1_024,
  /** A page is built in memory, with metadata and perhaps values. */
  pageLimitMax: 1_000,
  pageLimitDefault: 100,
  /** Matches in one page; deeper walks go by cursor, which costs the same at every depth. */
  topKMax: 10_000,
  topKDefault: 10,
  /** A filter is compiled and evaluated per segment; nobody writes 256 conditions by hand. */
  filterNodesMax: 256,
  filterDepthMax: 16,
  /** Values of one `$in`, `$nin` or `$contains_*`. */
  filterValuesMax: 10_000,
  /** Characters of a field name; finding a name in a document costs the square of its dots. */
  filterPathCharactersMax: 512,
  /** Ids sit in indexes and cursors; 512 bytes hold any URL worth using as an id. */
  vectorIdBytesMax: 512,
  /** Kept results of filters: 8 KiB a segment, so 250 filters over a million rows. */
  filterCacheBytesMax: 32 * 1024 * 1024,
  /** Metadata is for filters and display, not for documents. */
  metadataBytesMax: 40_960,
  metadataDepthMax: 8,
  /** Metadata paths of one segment kept as typed columns; further paths are evaluated on the JSON. */
  metadataColumnsMax: 256,
  /** Rows of one segment: bounds the work of one filter task. */
  segmentRowsMax: 65_536,
  /** Bytes of vectors in one segment: the unit of checkpoints, of device loads and of compaction. */
  segmentValueBytesMax: 64 * 1024 * 1024,
  /** Each collection has a writer, an index and an active segment. */
  collectionsMax: 10_000,
  /** A deadline that a client behind a gateway outlives. */
  requestMsMax: 30_000,
  /** How long a snapshot stays readable by cursor, in milliseconds. */
  retentionMs: 15 * 60 * 1000,
  /** How long an idempotent reply is kept, in milliseconds. */
  idempotencyMs: 24 * 60 * 60 * 1000,
  /** Queries waiting for the engine; a longer queue only adds latency. */
  queuedQueriesMax: 4_096,
  /** Writes waiting for one collection's commit, which takes thousands of small ones at a time. */
  queuedWritesMax: 16_384,
  /** Filters and large bodies waiting for a thread: at 20 ms each, what eight work off in 10 s. */
  queuedTasksMax: 4_096,
  /** Characters of an idempotency key. */
  idempotencyKeyCharactersMax: 255,
  /** Labels and descriptions are for people. */
  descriptionCharactersMax: 2_000,
  labelsMax: 64,
  labelCharactersMax: 256,
  /** Reads a second of one principal: what keeps one client's runaway loop from being everybody's. */
  readRateMax: 20_000,
  readBurstMax: 40_000,
  /** Vectors written a second by one principal. */
  writeRateMax: 200_000,
  writeBurstMax: 400_000,
  /** Bodies held in memory at once, over all connections. */
  bodyBytesInFlightMax: 1_024_000_000,
  /** Replies that wait for their clients: ten pages of 1 000 vectors with 4 096 values as text. */
  replyBytesInFlightMax: 512_000_000,
  /** Work of a request takes the main thread for a few milliseconds at most; this is far beyond. */
  eventLoopDelayMsMax: 1_000,
  /** Each takes a descriptor and some kilobytes. */
  connectionsMax: 20_000,
  /** Half of them: one client alone does not shut out the others. */
  connectionsPerAddressMax: 10_000,
  /** For the head of a request to arrive, in milliseconds: what is slower holds connections on purpose. */
  headerMsMax: 20_000,
  /** For a whole request to arrive: 64 MB over a line of 2 Mbit/s. */
  arrivalMsMax: 300_000,
  /** How long a client may take none of a reply that waits for it. */
  stalledMsMax: 120_000,
  /** Longer than gateways keep theirs (60 s), so that it is they who close. */
  keepAliveMs: 72_000,
} as const satisfies Record<string, number>;

export type Limits = { readonly [name in keyof typeof DEFAULT_LIMITS]: number };
