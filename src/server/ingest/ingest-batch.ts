// Cuts a stream of vectors into batches, the units of commit: lines of NDJSON or record batches of Arrow. The cuts
// depend only on the bytes, so that a repeated stream has the same batches.

import { BufferPool } from '../../common/buffer-pool.js';
import { rowField, validationError } from '../../common/errors.js';
import type { FieldShapes } from '../../common/types.js';
import { itemWidth, UNNAMED } from '../../common/vectors.js';
import { chooseVectorColumns } from '../../formats/arrow/column-choice.js';
import { ArrowStreamReader } from '../../formats/arrow/stream-reader.js';
import { cutLines } from '../../formats/text/line-cutter.js';
import { decompressBodyTask, parseRecordBatchTask } from '../bodies/arrow-rows.js';
import { parseLinesTask } from '../bodies/json-rows.js';
import type { ParsedRows } from '../bodies/parsed-rows.js';
import type { RouteServices } from '../requests/route.js';
import { runParseTask } from './parse-request.js';

/** Rows that are parsed together and, unless an id is repeated, written atomically. */
export interface IngestBatch {
  /** The row of the stream that the batch starts with, from 0. */
  readonly firstRow: number;
  readonly rowCount: number;
  /** The size of the received bytes. */
  readonly byteCount: number;
  /** Called once. Rejects with issues that are located by rows of the stream. */
  parse(): Promise<ParsedRows>;
  /** Called when the parsed rows are no longer in use, but not after a failure. */
  release?(): void;
}

export interface BatchOptions {
  readonly services: RouteServices;
  readonly shapes: FieldShapes;
  readonly isKeyed: boolean;
  readonly isPatch: boolean;
  readonly idColumn: string | undefined;
  readonly vectorColumn: string | undefined;
  /** Replaces texts in parsed rows by their vectors; `firstRow` is the row of the stream that the rows start with. */
  readonly embed: (rows: ParsedRows, firstRow: number) => Promise<ParsedRows>;
  /** Called with the number of bytes that are held for the next batch. Throws if they do not fit into memory. */
  readonly onBuffered: (byteCount: number) => void;
}

/** One buffer each for the batches being read, parsed and written. */
const BODIES_KEPT_MAX = 3;

/** Shared memory, in which workers parse bytes in place and from which values are written to the log. */
const createBodyPool = (countMax: number) =>
  new BufferPool((byteCount) => new SharedArrayBuffer(byteCount), { countMax });

/**
 * A row of 16 384 numbers of 25 characters each and the longest metadata take half a megabyte; the rest is for
 * blanks.
 */
export const LINE_BYTES_MAX = 4_000_000;

export function lineTooLong({ row, line }: { readonly row: number; readonly line: number }): Error {
  return validationError([
    {
      location: rowField(row),
      code: 'limit_exceeded',
      detail: `Line ${line} has more than ${LINE_BYTES_MAX} bytes; a line is one vector.`,
      expected: LINE_BYTES_MAX,
    },
  ]);
}

export async function* lineBatches(
  body: AsyncIterable<Uint8Array>,
  { services, shapes, isKeyed, isPatch, onBuffered, embed }: BatchOptions,
): AsyncGenerator<IngestBatch, void, undefined> {
  const { limits } = services;
  // Each batch has a buffer for its lines and one for its values.
  const bodies = createBodyPool(2 * BODIES_KEPT_MAX);
  const { [UNNAMED]: unnamed } = shapes;
  const valueCount = unnamed === undefined ? 0 : itemWidth(unnamed);
  const valueBytes = valueCount * Float32Array.BYTES_PER_ELEMENT;
  const allocate = (byteCount: number) => bodies.acquire(byteCount);
  const options = { lineBytesMax: LINE_BYTES_MAX, tooLong: lineTooLong, allocate, onBuffered };
  for await (const lines of cutLines(body, options)) {
    const { firstRow, rowCount, bytes } = lines;
    const room = bodies.acquire(rowCount * valueBytes);
    const input = { ...lines, room, isKeyed, isPatch, shapes, limits };
    yield {
      firstRow,
      rowCount,
      byteCount: bytes.length,
      parse: async () =>
        embed(await runParseTask(services.pool, parseLinesTask, input, bytes.length, {}), firstRow),
      release() {
        bodies.release(bytes);
        bodies.release(room);
      },
    };
  }
}

export async function* recordBatches(
  body: AsyncIterable<Uint8Array>,
  options: BatchOptions,
): AsyncGenerator<IngestBatch, void, undefined> {
  const { services, shapes, isKeyed, isPatch, idColumn, vectorColumn, onBuffered, embed } = options;
  const { limits } = services;
  const bodies = createBodyPool(BODIES_KEPT_MAX);
  const reader = new ArrowStreamReader(body, {
    batchBytesMax: limits.bodyBytesMax,
    onBuffered,
    allocate: (byteCount) => bodies.acquire(byteCount),
    decompress: (part, bytesMax) => services.pool.run(decompressBodyTask, { part, bytesMax }),
  });
  const { fields } = await reader.readSchema();
  // Reports wrong columns before the first batch has arrived.
  chooseVectorColumns(fields, { idColumn, vectorColumn, vectors: shapes, isPatch });
  for await (const batch of reader.batches()) {
    const { firstRow, rowCount } = batch;
    const byteCount = batch.body.bytes.length;
    const input = { batch, idColumn, vectorColumn, isKeyed, isPatch, shapes, limits };
    yield {
      firstRow,
      rowCount,
      byteCount,
      parse: async () =>
        embed(
          await runParseTask(services.pool, parseRecordBatchTask, input, byteCount, {}),
          firstRow,
        ),
      release: () => bodies.release(batch.body.bytes),
    };
  }
}
