// From the bytes of whole lines to rows for the log: one pure function, run in the pool but for a few
// lines. A line is a vector by the same rules as a member of `vectors` in a JSON body.

import { createHash } from 'node:crypto';
import {
  ISSUES_MAX,
  rowField,
  SagittaError,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import type { Task } from '../../platform/pool.js';
import { MetadataFinder } from './metadata-span.js';
import { isBlank, type LinesUnit } from './ndjson-units.js';
import { parseJson } from './parse-json.js';
import { isObject, type RowLimits, RowReader } from './row-reader.js';
import { buffersOf, type ParsedUnit } from './unit.js';
import type { VectorShape } from './vector-values.js';

export interface LinesInput extends LinesUnit {
  readonly isKeyed: boolean;
  readonly shape: VectorShape;
  readonly limits: RowLimits;
}

const NEWLINE = 0x0a;
/** Of one line; see parse-json.ts. */
const BRACKETS_UNCHECKED = 1_000;

export const parseLinesTask: Task<LinesInput, ParsedUnit> = {
  name: 'http.parseLines',
  run: readLines,
  transfer: ({ batch }) => buffersOf(batch),
};

/** Throws a refusal with the first issues. */
function readLines(input: LinesInput): ParsedUnit {
  const { bytes, rowCount, firstRow } = input;
  const issues: ValidationIssue[] = [];
  const cuts: number[] = [];
  const spans = new Int32Array(2 * rowCount);
  const finder = new MetadataFinder(bytes, spans);
  const reader = new RowReader({ ...input, body: bytes, pathId: null, spans, issues, cuts });
  let row = 0;
  let line = input.firstLine;
  for (let start = 0; start < bytes.length && issues.length < ISSUES_MAX; line++) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 ? bytes.length : newline;
    if (!isBlank(bytes[start], end - start)) {
      const parsed = parseLine(bytes.subarray(start, end), line, firstRow + row, issues);
      if (parsed !== FAILED) {
        if (isObject(parsed)) finder.find(row, start);
        reader.read(row, parsed);
      }
      row++;
    }
    start = end + 1;
  }
  if (issues.length > 0) throw validationError(issues);
  const digest = input.isKeyed ? createHash('sha256').update(bytes).digest('hex') : undefined;
  return { batch: reader.build(), cuts, digest };
}

const FAILED = Symbol('not JSON');

function parseLine(
  bytes: Uint8Array,
  line: number,
  row: number,
  issues: ValidationIssue[],
): unknown {
  try {
    return parseJson(bytes, BRACKETS_UNCHECKED, `Line ${line}`);
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    for (const issue of error.issues) issues.push({ ...issue, location: rowField(row) });
    return FAILED;
  }
}
