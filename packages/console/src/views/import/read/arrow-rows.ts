// Rows of Arrow IPC, a file or a stream. An Arrow file is a stream after its first eight bytes, so both
// are read from the beginning, one record batch at a time.

import { decodeBatches } from '@sagitta/client/arrow';
import { chunksOf, readBytes, type SliceableFile } from './file-bytes.js';
import { ImportError, type RowSource, type SourceRow } from './row-source.js';

/** The magic bytes of a file and their padding. */
const FILE_MAGIC_BYTES = 8;
/** What ends a file, and a stream. */
const FILE_END = new TextEncoder().encode('ARROW1');
const STREAM_END = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);

export async function openArrow(file: SliceableFile, isFile: boolean): Promise<RowSource> {
  await checkEnd(file, isFile ? FILE_END : STREAM_END);
  let position = 0;
  const batches = () =>
    decodeBatches(
      chunksOf(file, isFile ? FILE_MAGIC_BYTES : 0, (at) => {
        position = at;
      }),
    );
  const opened = batches();
  const first = await readable(() => opened.next());
  await opened.return();
  const columns = first.done ? [] : first.value.schema.fields.map(({ name }) => name);
  async function* rows(startRow: number): AsyncGenerator<readonly SourceRow[]> {
    const following = batches();
    let before = 0;
    while (true) {
      const next = await readable(() => following.next());
      if (next.done) return;
      const from = Math.min(next.value.numRows, Math.max(0, startRow - before));
      before += next.value.numRows;
      const block = rowsOf(next.value, columns, from);
      if (block.length > 0) yield block;
    }
  }
  return {
    title: isFile ? 'Arrow file' : 'Arrow stream',
    rowCount: undefined,
    isText: false,
    columns,
    rows,
    share: () => (file.size === 0 ? 1 : position / file.size),
  };
}

type RecordBatch = Awaited<ReturnType<ReturnType<typeof decodeBatches>['next']>>['value'] & object;

function rowsOf(batch: RecordBatch, columns: readonly string[], from: number): SourceRow[] {
  const read = columns.map((name, at) => ({ name, column: batch.getChildAt(at)! }));
  return Array.from({ length: batch.numRows - from }, (_, at) => ({
    kind: 'row',
    cells: Object.fromEntries(read.map(({ name, column }) => [name, plain(column.get(from + at))])),
  }));
}

/** The decoder takes the end of a file that was cut off for the end of the stream. */
async function checkEnd(file: SliceableFile, expected: Uint8Array): Promise<void> {
  const end = await readBytes(file, Math.max(0, file.size - expected.length), file.size);
  if (expected.every((byte, at) => byte === end[at])) return;
  throw new ImportError('the file does not end as Arrow IPC does; it may have been cut off');
}

/** Lists and structs as arrays and objects; everything else as it is. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  if ('toArray' in value && typeof value.toArray === 'function') {
    const items: unknown = value.toArray();
    return ArrayBuffer.isView(items) ? items : Array.from(items as Iterable<unknown>, plain);
  }
  if ('toJSON' in value && typeof value.toJSON === 'function' && !(value instanceof Date)) {
    const members = value.toJSON() as Record<string, unknown>;
    return Object.fromEntries(Object.entries(members).map(([name, item]) => [name, plain(item)]));
  }
  return value;
}

async function readable<Value>(read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const isCompressed = /compress|codec/i.test(reason);
    throw new ImportError(
      isCompressed
        ? 'the Arrow buffers are compressed, which the console cannot read; use `sagitta import`'
        : reason,
      { cause },
    );
  }
}
