// What a worker thread of the pool can do: the composition root of the other side.

import { searchReferenceTask } from './engine/core/reference-engine.js';
import { encodeSimdTask, workSimdTask } from './engine/simd/simd-engine.js';
import { evaluateFilterTask } from './filter/evaluate-task.js';
import { createTaskHandler } from './platform/pool.js';
import { compactSegmentsTask } from './segment/compaction.js';
import { encodeSegmentTask, verifySegmentTask } from './segment/segment-file.js';
import { decompressPartTask, parseBatchTask } from './server/ingest/parse-batch.js';
import { parseJsonTask } from './server/ingest/parse-json.js';
import { parseLinesTask } from './server/ingest/parse-lines.js';
import { parseVectorsTask } from './server/ingest/parse-vectors.js';
import { readQueryRowsTask } from './server/ingest/read-queries.js';
import { writeLinesTask } from './server/replies/vector-lines.js';

export default createTaskHandler([
  compactSegmentsTask,
  decompressPartTask,
  encodeSegmentTask,
  encodeSimdTask,
  evaluateFilterTask,
  parseBatchTask,
  parseJsonTask,
  parseLinesTask,
  parseVectorsTask,
  readQueryRowsTask,
  searchReferenceTask,
  verifySegmentTask,
  workSimdTask,
  writeLinesTask,
]);
