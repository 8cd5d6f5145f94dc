// The composition root of worker threads: the tasks that the pool can run.

import { aggregateSegmentsTask, mergeValuesTask } from './database/aggregate/aggregate-task.js';
import { describePathsTask, findPathsTask } from './database/aggregate/found-schema.js';
import { sampleRowsTask } from './database/bulk/sample.js';
import { makeTypedColumnsTask } from './database/bulk/typed-columns.js';
import { typePathsTask } from './database/bulk/typed-fields.js';
import { orderRowsTask } from './database/order/order-rows.js';
import { findComponentsTask } from './database/projection/components.js';
import { addProductsTask, centerRowsTask } from './database/projection/covariance.js';
import { projectRowsTask } from './database/projection/project-rows.js';
import { diversifyTask } from './database/query/diversify.js';
import { selectBesideTask } from './database/query/group-rows.js';
import { scoreRowsTask } from './database/query/score-stats.js';
import { countBeforeTask } from './engine/core/count-before.js';
import { searchExamplesTask } from './engine/core/example-search.js';
import { searchMaxSimTask } from './engine/core/max-sim.js';
import { searchReferenceTask } from './engine/core/reference-engine.js';
import { encodeHeadTask, encodeSimdTask, learnBasisTask } from './engine/simd/row-encoder.js';
import { workSimdTask } from './engine/simd/simd-engine.js';
import { evaluateFilterTask } from './filter/evaluate-task.js';
import { buildSparseRunTask, mergeSparseRunsTask } from './inverted/sparse-index.js';
import { countSparseTask, matchSparseTask, rankSparseTask } from './inverted/sparse-search.js';
import { buildTextRunTask, mergeTextRunsTask } from './inverted/text-index.js';
import { countTextTask, matchTextTask, rankTextTask } from './inverted/text-search.js';
import { collectGarbageTask, trimMemoryTask } from './platform/memory-release.js';
import { createTaskHandler } from './platform/pool.js';
import { compactSegmentsTask } from './segment/compaction.js';
import { copyValuesTask } from './segment/dense-field.js';
import { encodeWriteTask } from './segment/log-record.js';
import { encodeSegmentTask, verifySegmentTask } from './segment/segment-file.js';
import { decompressBodyTask, parseRecordBatchTask } from './server/bodies/arrow-rows.js';
import { parseJsonTask } from './server/bodies/json-body.js';
import { parseLinesTask, parseVectorsTask } from './server/bodies/json-rows.js';
import { readQueryRowsTask } from './server/ingest/read-queries.js';
import { writeCsvTask } from './server/replies/csv-table.js';
import { writeLinesTask } from './server/replies/ndjson-table.js';

export default createTaskHandler([
  addProductsTask,
  aggregateSegmentsTask,
  buildTextRunTask,
  buildSparseRunTask,
  centerRowsTask,
  collectGarbageTask,
  compactSegmentsTask,
  copyValuesTask,
  countBeforeTask,
  countSparseTask,
  decompressBodyTask,
  describePathsTask,
  diversifyTask,
  encodeHeadTask,
  encodeSegmentTask,
  encodeSimdTask,
  encodeWriteTask,
  evaluateFilterTask,
  findComponentsTask,
  findPathsTask,
  makeTypedColumnsTask,
  matchSparseTask,
  matchTextTask,
  mergeTextRunsTask,
  mergeSparseRunsTask,
  mergeValuesTask,
  orderRowsTask,
  parseRecordBatchTask,
  parseJsonTask,
  parseLinesTask,
  parseVectorsTask,
  rankSparseTask,
  rankTextTask,
  countTextTask,
  projectRowsTask,
  readQueryRowsTask,
  sampleRowsTask,
  scoreRowsTask,
  searchExamplesTask,
  searchMaxSimTask,
  searchReferenceTask,
  selectBesideTask,
  learnBasisTask,
  trimMemoryTask,
  typePathsTask,
  verifySegmentTask,
  workSimdTask,
  writeCsvTask,
  writeLinesTask,
]);
