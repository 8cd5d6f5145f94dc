// The columns of exported records: `id`, the vectors, and `metadata` as verbatim JSON or as a column per path.

import type { RowChunk, Scan, TypedChunk } from '../../database/bulk/scan.js';
import type { TypedField } from '../../database/bulk/typed-fields.js';
import type { Admit } from './sent-rows.js';
import { type Table, type TableColumn, tableOf } from './table.js';
import { vectorColumns } from './vector-columns.js';

export interface RecordsOptions {
  readonly includeValues: boolean;
  /** Whether there is a column of JSON text. */
  readonly hasMetadataText: boolean;
  readonly admit: Admit;
}

type Chunk = RowChunk & Partial<TypedChunk>;

export function recordTable(scan: Scan, options: RecordsOptions): Table {
  const columns: TableColumn<Chunk>[] = [
    { name: 'id', type: 'utf8', of: ({ ids }) => ({ leaf: ids }) },
    ...(options.includeValues ? vectorColumns(scan.fields) : []),
    ...(options.hasMetadataText ? [METADATA] : []),
    ...scan.typedFields.map(typedColumn),
  ];
  const chunks: Iterable<Chunk> | AsyncIterable<Chunk> =
    scan.typedFields.length > 0 ? scan.typedChunks() : scan.chunks();
  return tableOf(columns, chunks, {
    metadata: new Map([['sequence', String(scan.sequence)]]),
    admit: options.admit,
  });
}

const METADATA: TableColumn<Chunk> = {
  name: 'metadata',
  type: 'json',
  of: ({ metadata }) => ({ leaf: metadata! }),
};

/** Names of other columns, and names that could collide with prefixed paths. */
const OTHER_COLUMNS = /^(id|values|metadata|(vectors|sparse_vectors|metadata)\..*)$/s;

function typedColumn({ path, type, isList }: TypedField, i: number): TableColumn<Chunk> {
  const leaf = type === 'text' ? 'utf8' : type;
  return {
    // A path that is named like another column gets a prefix.
    name: OTHER_COLUMNS.test(path) ? `metadata.${path}` : path,
    type: isList ? { listOfNullable: leaf } : leaf,
    isNullable: true,
    of: ({ typed }) => typed![i]!,
  };
}
