// What a worker thread of the pool can do: the composition root of the other side.

import { searchReferenceTask } from './engine/reference-engine.js';
import { encodeSimdTask, workSimdTask } from './engine/simd-engine.js';
import { evaluateFilterTask } from './filter/evaluate-task.js';
import { parseJsonTask } from './http/bodies/parse-json.js';
import { parseVectorsTask } from './http/bodies/parse-vectors.js';
import { decompressPartTask, parseBatchTask } from './http/ingest/parse-batch.js';
import { parseLinesTask } from './http/ingest/parse-lines.js';
import { readQueryRowsTask } from './http/queries/read-queries.js';
import { writeLinesTask } from './http/streams/vector-lines.js';
import { createTaskHandler } from './pool.js';
import { compactSegmentsTask } from './segment/compaction.js';
import { encodeSegmentTask, verifySegmentTask } from './segment/segment-file.js';

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
