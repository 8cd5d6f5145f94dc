// The units of a body, by what it is made of. Small ones are parsed at once, others in the pool.

import { ReusedBytes } from '../../common/reused-bytes.js';
import { chooseVectorColumns } from '../../formats/arrow/column-choice.js';
import { ArrowStreamReader } from '../../formats/arrow/stream-reader.js';
import { INLINE_BYTES_MAX, type Task } from '../../platform/pool.js';
import type { RouteServices } from '../route.js';
import { cutLines } from './ndjson-units.js';
import { decompressPartTask, parseBatchTask } from './parse-batch.js';
import { parseLinesTask } from './parse-lines.js';
import type { ParsedUnit, StreamUnit } from './unit.js';
import type { VectorShape } from './vector-values.js';

export interface UnitsOptions {
  readonly services: RouteServices;
  readonly shape: VectorShape;
  readonly isKeyed: boolean;
  readonly idColumn: string | undefined;
  readonly vectorColumn: string | undefined;
  /** Told how many bytes are kept of the unit to come. Throws when there is no room for them. */
  readonly onBuffered: (byteCount: number) => void;
}

/** One is read, one parsed, one written. */
const BODIES_KEPT_MAX = 3;

export async function* lineUnits(
  body: AsyncIterable<Uint8Array>,
  { services, shape, isKeyed, onBuffered }: UnitsOptions,
): AsyncGenerator<StreamUnit, void, undefined> {
  const { dimensionMax, metadataBytesMax, metadataDepthMax, vectorIdBytesMax } = services.limits;
  const limits = { dimensionMax, metadataBytesMax, metadataDepthMax, vectorIdBytesMax };
  for await (const lines of cutLines(body, onBuffered)) {
    const { firstRow, rowCount, bytes } = lines;
    const input = { ...lines, isKeyed, shape, limits };
    yield {
      firstRow,
      rowCount,
      byteCount: bytes.length,
      parse: () => parse(services, parseLinesTask, input, bytes.length, [bytes.buffer]),
    };
  }
}

export async function* batchUnits(
  body: AsyncIterable<Uint8Array>,
  { services, shape, isKeyed, idColumn, vectorColumn, onBuffered }: UnitsOptions,
): AsyncGenerator<StreamUnit, void, undefined> {
  const { batchRowsMax, bodyBytesMax, metadataBytesMax, metadataDepthMax, vectorIdBytesMax } =
    services.limits;
  const limits = {
    batchRowsMax,
    bodyBytesMax,
    metadataBytesMax,
    metadataDepthMax,
    vectorIdBytesMax,
  };
  // Shared: the threads read what lies here, and its values are written from here.
  const bodies = new ReusedBytes((byteCount) => new SharedArrayBuffer(byteCount), {
    countMax: BODIES_KEPT_MAX,
  });
  const reader = new ArrowStreamReader(body, {
    batchBytesMax: bodyBytesMax,
    onBuffered,
    allocate: (byteCount) => bodies.take(byteCount),
    decompress: (part, bytesMax) => services.pool.run(decompressPartTask, { part, bytesMax }),
  });
  const { fields } = await reader.readSchema();
  // What is wrong with the columns shows before the first batch is here.
  chooseVectorColumns(fields, { idColumn, vectorColumn });
  for await (const batch of reader.batches()) {
    const { firstRow, rowCount } = batch;
    const byteCount = batch.part.body.length;
    const input = { batch, idColumn, vectorColumn, isKeyed, shape, limits };
    yield {
      firstRow,
      rowCount,
      byteCount,
      parse: () => parse(services, parseBatchTask, input, byteCount, []),
      release: () => bodies.giveBack(batch.part.body),
    };
  }
}

async function parse<Input>(
  { pool }: RouteServices,
  task: Task<Input, ParsedUnit>,
  input: Input,
  byteCount: number,
  transfer: readonly ArrayBuffer[],
): Promise<ParsedUnit> {
  if (byteCount <= INLINE_BYTES_MAX) return task.run(input);
  return pool.run(task, input, { transfer });
}
