// All decoders of untrusted bytes: how to call each, which errors mean that the bytes are wrong and, if a second
// implementation exists, whether both find the same.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { openInput } from '../../../src/cli/files/file-source.js';
import { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { ArrowFileReader } from '../../../src/formats/arrow/file-reader.js';
import { decodeLz4Frame } from '../../../src/formats/arrow/lz4-frame.js';
import { decodeArrowFile, decodeArrowStream } from '../../../src/formats/arrow/stored-arrow.js';
import { decodeZstd, loadZstd } from '../../../src/formats/arrow/zstd.js';
import { readElements, readMembers } from '../../../src/formats/json/json-scanner.js';
import { openVectors } from '../../../src/readers/formats.js';
import { ReadError } from '../../../src/readers/read-error.js';
import { decodeLogRecord } from '../../../src/segment/log-record.js';
import { parseVectorsInput } from '../../../src/server/bodies/json-rows.js';
import { batchesOf, readBatch, textAt } from '../../formats/arrow/streams.js';
import { parseBothWays, withoutGeneratedIds } from '../../support/both-readers.js';

/** The result of an input, `read` or the reason why not, for the counts in the report. */
type Outcome = string;

export interface Decoder {
  readonly name: string;
  /** Folders of the corpus. */
  readonly folders: readonly string[];
  /** Errors that `isRefusal` does not accept are faults. */
  decode(bytes: Buffer): Promise<Outcome>;
  isRefusal(error: unknown): boolean;
}

/** An error with a code and a readable message. */
function isSagittaError(error: unknown): boolean {
  return error instanceof SagittaError && error.message !== '' && error.code !== 'internal';
}

function isReadError(error: unknown): boolean {
  return error instanceof ReadError && error.message !== '';
}

/** An error of a function that throws plain errors with a message, which its caller converts. */
function isPlainError(error: unknown): boolean {
  return error instanceof Error && error.constructor === Error && error.message !== '';
}

const DIMENSION = 2;
const BATCH_BYTES_MAX = 1_000_000;
/** More than a frame of the corpus holds. */
const FRAME_BYTES_MAX = 4_096;

async function decodeStream(bytes: Buffer): Promise<Outcome> {
  const rows: { id: string | null; values: number[] }[] = [];
  let hasIssues = false;
  for (const batch of await batchesOf(bytes, 1 + (bytes.length % 997))) {
    const { count, ids, values, metadata, issues } = readBatch(batch, { dimension: DIMENSION });
    if (issues.length > 0) {
      hasIssues = true;
      continue;
    }
    assert.equal(values.length, count * DIMENSION);
    assert.ok(values.every(Number.isFinite), 'a value is not finite');
    const hasText = batch.fields.some(({ name }) => name === 'metadata');
    for (let row = 0; row < count; row++) {
      if (metadata !== null && !hasText) JSON.parse(textAt(metadata, row));
      const own = values.subarray(row * DIMENSION, (row + 1) * DIMENSION);
      rows.push({ id: ids === null ? null : textAt(ids, row), values: [...own] });
    }
  }
  if (hasIssues) return 'issues';
  return compareWithApacheArrow(bytes, rows);
}

/** Rows that both decoders read must be the same; apache-arrow supports fewer types and codecs, and checks less. */
function compareWithApacheArrow(
  bytes: Buffer,
  rows: readonly { id: string | null; values: number[] }[],
): Outcome {
  let others: { id: unknown; values: unknown }[];
  try {
    const table = tableFromIPC(bytes);
    const vectors = table.getChild('values');
    const ids = table.getChild('id');
    if (vectors === null || ids === null) return 'read';
    others = Array.from({ length: table.numRows }, (_, i) => ({
      id: ids.get(i),
      values: [...(vectors.get(i) as Iterable<number>)],
    }));
  } catch {
    return 'read';
  }
  if (!others.every(({ id }) => typeof id === 'string')) return 'read';
  assert.deepEqual(rows, others);
  return 'read twice';
}

async function decodeFile(bytes: Buffer): Promise<Outcome> {
  const source = {
    byteLength: bytes.length,
    async readInto(target: Uint8Array, offset: number) {
      assert.ok(offset + target.length <= bytes.length, 'a read beyond the file');
      target.set(bytes.subarray(offset, offset + target.length));
    },
  };
  const reader = await ArrowFileReader.open(source, BATCH_BYTES_MAX);
  for await (const batch of reader.batches()) readBatch(batch, { dimension: DIMENSION });
  return 'read';
}

/** Scanned members and elements must be what JSON.parse finds, if it accepts the whole text. */
async function scanJson(bytes: Buffer): Promise<Outcome> {
  const text = bytes.toString();
  const whole = attempt(() => JSON.parse(text) as unknown);
  const isList = text.trimStart().startsWith('[');
  const found = attempt(() => (isList ? readElements(text) : readMembers(text)));
  if (found === null) {
    assert.ok(whole === null || typeof whole.value !== 'object', 'JSON is refused');
    throw new SyntaxError('not an object or an array');
  }
  const parts = found.value.map((part) =>
    attempt(() => JSON.parse(typeof part === 'string' ? part : part.text) as unknown),
  );
  const isWhole = parts.every((part) => part !== null);
  assert.equal(whole !== null, isWhole, 'only one of the two takes the text');
  if (whole === null) return 'parts are not JSON';
  const values = parts.map((part) => part!.value);
  if (isList) {
    assert.deepEqual(values, whole.value);
  } else {
    const names = found.value.map((part) => (typeof part === 'string' ? '' : part.name));
    assert.deepEqual(Object.fromEntries(names.map((name, i) => [name, values[i]])), whole.value);
  }
  return 'read twice';
}

function attempt<Value>(run: () => Value): { readonly value: Value } | null {
  try {
    return { value: run() };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const LIMITS = { ...DEFAULT_LIMITS, dimensionMax: 64, batchRowsMax: 64 };
const SHAPES = {
  '': { kind: 'dense', dimension: DIMENSION, metric: 'cosine' },
  t: { kind: 'sparse' },
} as const;

async function decodeBody(bytes: Buffer): Promise<Outcome> {
  const input = { body: bytes, isKeyed: false, pathId: null, shapes: SHAPES, limits: LIMITS };
  const { outcome } = parseBothWays(
    (cut) => parseVectorsInput({ ...input, room: null }, cut),
    withoutGeneratedIds,
  );
  if (outcome.ok) return 'read twice';
  assert.ok(outcome.error.detail !== '', 'no message');
  assert.notEqual(outcome.error.code, 'internal', outcome.error.detail);
  return outcome.error.code;
}

/** Reads a file with this extension as the command line does. */
async function readFile(extension: string, bytes: Buffer): Promise<Outcome> {
  // The HDF5 library mistakes a file with the same name for the one that it has open.
  const path = join(folder(), `input-${fileCount++}.${extension}`);
  writeFileSync(path, bytes);
  const reader = await openVectors(await openInput(path), { dataset: undefined, rowsPerBatch: 3 });
  let count = 0;
  for await (const { values, rowCount } of reader.batches(0)) {
    count += rowCount;
    assert.ok(values.every(Number.isFinite), 'a value is not finite');
  }
  return count > 0 ? 'read' : 'no rows';
}

let temporary: string | undefined;
let fileCount = 0;

function folder(): string {
  temporary ??= mkdtempSync(join(tmpdir(), 'sagitta-decoders-'));
  return temporary;
}

export function removeTemporaryFiles(): void {
  if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  temporary = undefined;
}

const zstd = await loadZstd();

const fileReader = (name: string, extension = name, folders = [name]): Decoder => ({
  name: `${name} file`,
  folders,
  decode: (bytes) => readFile(extension, bytes),
  isRefusal: isReadError,
});

export const DECODERS: readonly Decoder[] = [
  {
    name: 'Arrow stream',
    folders: ['arrow-stream'],
    decode: decodeStream,
    isRefusal: isSagittaError,
  },
  { name: 'Arrow file', folders: ['arrow-file'], decode: decodeFile, isRefusal: isSagittaError },
  {
    name: 'stored Arrow stream',
    folders: ['arrow-stream'],
    async decode(bytes) {
      decodeArrowStream(bytes);
      return 'read';
    },
    isRefusal: isSagittaError,
  },
  {
    name: 'stored Arrow file',
    folders: ['arrow-file'],
    async decode(bytes) {
      decodeArrowFile(bytes);
      return 'read';
    },
    isRefusal: isSagittaError,
  },
  {
    name: 'log record',
    folders: ['arrow-stream'],
    async decode(bytes) {
      decodeLogRecord(bytes);
      return 'read';
    },
    isRefusal: isSagittaError,
  },
  {
    name: 'LZ4 frame',
    folders: ['lz4'],
    async decode(bytes) {
      const target = new Uint8Array(FRAME_BYTES_MAX);
      return decodeLz4Frame(bytes, target) > 0 ? 'read' : 'empty';
    },
    isRefusal: isPlainError,
  },
  {
    name: 'Zstandard frame',
    folders: ['zstd'],
    async decode(bytes) {
      const target = new Uint8Array(FRAME_BYTES_MAX);
      return decodeZstd(zstd, bytes, target) > 0 ? 'read' : 'empty';
    },
    isRefusal: isPlainError,
  },
  {
    name: 'JSON scanner',
    folders: ['json-body'],
    decode: scanJson,
    isRefusal: (error) => error instanceof SyntaxError,
  },
  { name: 'JSON body', folders: ['json-body'], decode: decodeBody, isRefusal: isSagittaError },
  fileReader('arrow', 'arrow', ['arrow-file']),
  fileReader('arrows', 'arrows', ['arrow-stream']),
  fileReader('parquet'),
  fileReader('npy'),
  fileReader('npz'),
  fileReader('hdf5'),
  fileReader('fvecs', 'fvecs', ['records']),
  fileReader('fbin', 'fbin', ['records']),
  fileReader('i8bin', 'i8bin', ['records']),
  fileReader('csv', 'csv', ['text']),
  fileReader('ndjson', 'ndjson', ['text']),
];
