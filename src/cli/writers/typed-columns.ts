// Replaces the metadata of an export in Arrow by a column for each of its paths: numbers as float64, text,
// booleans, and JSON text where values are arrays or of several types. A value that is missing or null is
// null. Holds one record batch in memory.

import {
  Bool,
  Field,
  Float64,
  makeData,
  RecordBatch,
  RecordBatchReader,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { Client, FoundPath } from '../../client/client.js';
import { flattenMetadata } from '../../common/metadata-path.js';
import type { Json, JsonObject } from '../../common/types.js';
import { encodeEnd } from '../../formats/arrow/ipc-writer.js';
import { CliError } from '../failure.js';

const TYPES = { number: Float64, string: Utf8, boolean: Bool, json: Utf8 } as const;

export interface TypedColumn {
  readonly path: string;
  /** `null` for objects: their members have columns. */
  readonly kind: keyof typeof TYPES | null;
}

/** The columns for the metadata of the vectors that pass the filter. */
export async function findTypedColumns(
  collection: Pick<ReturnType<Client['collection']>, 'schema'>,
  filter: JsonObject | undefined,
): Promise<TypedColumn[]> {
  const columns: TypedColumn[] = [];
  let after: string | undefined;
  do {
    const page = await collection.schema({
      ...(filter !== undefined && { filter }),
      ...(after !== undefined && { after }),
    });
    columns.push(...page.paths.map(columnOf));
    after = page.next_after;
  } while (after !== undefined);
  return columns;
}

function columnOf({ path, types }: FoundPath): TypedColumn {
  const found = Object.entries(types).flatMap(([type, count]) =>
    type === 'null' || count === 0 ? [] : [type],
  );
  const [only = 'string'] = found;
  if (found.length > 1 || only === 'array') return { path, kind: 'json' };
  return { path, kind: only === 'object' ? null : (only as TypedColumn['kind']) };
}

/** Throws CliError for metadata that has other paths or types. */
export async function* withTypedColumns(
  stream: AsyncIterable<Uint8Array>,
  columns: readonly TypedColumn[],
): AsyncGenerator<Uint8Array> {
  const reader = await RecordBatchReader.from(stream);
  await reader.open();
  const rest = reader.schema.fields.filter(({ name }) => name !== 'metadata');
  const written = columns.filter(({ kind }) => kind !== null);
  const fields = written.map(
    ({ path, kind }) => new Field(columnName(path), new TYPES[kind!](), true),
  );
  const schema = new Schema([...rest, ...fields], reader.schema.metadata);
  const start = encode(schema, []);
  yield start.subarray(0, start.length - END_BYTES);
  for await (const batch of reader) {
    const cells = cellsOf(batch.getChild('metadata')!, columns);
    const children = [
      ...rest.map(({ name }) => batch.getChild(name)!.data[0]!),
      ...written.map(
        ({ path, kind }) => vectorFromArray(cells.get(path)!, new TYPES[kind!]()).data[0]!,
      ),
    ];
    const type = new Struct(schema.fields);
    const data = makeData({ type, length: batch.numRows, nullCount: 0, children });
    const bytes = encode(schema, [new RecordBatch(schema, data)]);
    yield bytes.subarray(start.length - END_BYTES, bytes.length - END_BYTES);
  }
  yield encodeEnd();
}

const OTHER_COLUMNS = /^(id|values|metadata|(sparse_)?vectors\..*)$/;

/** Paths that are named like another column of the export get a prefix. */
function columnName(path: string): string {
  return OTHER_COLUMNS.test(path) ? `metadata.${path}` : path;
}

type Cell = number | string | boolean | null;

/** The values of each path, one per row. */
function cellsOf(
  documents: Iterable<string>,
  columns: readonly TypedColumn[],
): ReadonlyMap<string, Cell[]> {
  const rows = [...documents];
  const kinds = new Map(columns.map(({ path, kind }) => [path, kind]));
  const cells = new Map(columns.map(({ path }) => [path, new Array<Cell>(rows.length).fill(null)]));
  for (const [row, text] of rows.entries()) {
    flattenMetadata(JSON.parse(text) as JsonObject, (path, value) => {
      cells.get(path)![row] = cellOf(path, value, kinds.get(path));
    });
  }
  return cells;
}

function cellOf(path: string, value: Json, kind: TypedColumn['kind'] | undefined): Cell {
  if (kind === undefined) throw changed(path);
  if (value === null) return null;
  if (kind === 'json') return JSON.stringify(value);
  const isObject = typeof value === 'object' && !Array.isArray(value);
  if (kind === null && isObject) return null;
  if (typeof value !== kind) throw changed(path);
  return value as Cell;
}

function changed(path: string): CliError {
  return new CliError(
    `the metadata path ${JSON.stringify(path)} got values of another type while the export began; run it again`,
  );
}

/** The end-of-stream mark. */
const END_BYTES = 8;

/** A whole stream, of which the first bytes are the schema, and the last ones the mark. */
function encode(schema: Schema, batches: readonly RecordBatch[]): Uint8Array {
  const writer = new RecordBatchStreamWriter();
  writer.reset(undefined, schema);
  for (const batch of batches) writer.write(batch);
  return writer.finish().toUint8Array(true);
}
