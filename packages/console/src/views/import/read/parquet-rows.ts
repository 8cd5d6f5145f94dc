// Rows of Parquet, read by parts of row groups, so that a large row group does not have to fit into memory
// as objects.

import { parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { SliceableFile } from './file-bytes.js';
import { ImportError, type RowSource, type SourceRow } from './row-source.js';

/** Uncompressed bytes of what is decoded at once; as objects they take about four times as much. */
const PART_BYTES = 48_000_000;

export async function openParquet(file: SliceableFile): Promise<RowSource> {
  const buffer = {
    byteLength: file.size,
    slice: (start: number, end?: number) => file.slice(start, end ?? file.size).arrayBuffer(),
  };
  const metadata = await readable(() => parquetMetadataAsync(buffer));
  const rowCount = Number(metadata.num_rows);
  const columns = parquetSchema(metadata).children.map(({ element }) => element.name);
  const parts = partsOf(metadata.row_groups);
  let done = 0;
  async function* rows(startRow: number): AsyncGenerator<readonly SourceRow[]> {
    for (const { first, end } of parts) {
      if (end <= startRow) continue;
      const rowStart = Math.max(first, startRow);
      const options = { file: buffer, metadata, compressors, rowStart, rowEnd: end };
      const found = await readable(() => parquetReadObjects({ ...options, useOffsetIndex: true }));
      done = end;
      yield found.map((cells): SourceRow => ({ kind: 'row', cells }));
    }
  }
  return {
    title: 'Parquet',
    rowCount,
    isText: false,
    columns,
    rows,
    share: () => (rowCount === 0 ? 1 : done / rowCount),
  };
}

interface RowGroup {
  readonly num_rows: bigint;
  readonly total_byte_size: bigint;
}

function partsOf(groups: readonly RowGroup[]): { readonly first: number; readonly end: number }[] {
  let groupStart = 0;
  return groups.flatMap(({ num_rows: count, total_byte_size: byteCount }) => {
    const start = groupStart;
    const groupRows = Number(count);
    groupStart += groupRows;
    const partCount = Math.max(1, Math.ceil(Number(byteCount) / PART_BYTES));
    const partRows = Math.max(1, Math.ceil(groupRows / partCount));
    return Array.from({ length: Math.ceil(groupRows / partRows) }, (_, part) => ({
      first: start + part * partRows,
      end: start + Math.min(groupRows, (part + 1) * partRows),
    }));
  });
}

async function readable<Value>(read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ImportError(`expected Parquet: ${reason}`, { cause });
  }
}
