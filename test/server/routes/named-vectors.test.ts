// Streams and files with named vectors, of a real server: what is exported is what was written, from any
// format to any format. SAGITTA_TEST_PYTHON names an interpreter with pyarrow, polars and duckdb.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  Field,
  Float32,
  List,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { type Bitmap, createBitmap, setBit } from '../../../src/common/bitmap.js';
import { utf8ColumnOf } from '../../../src/common/utf8-column.js';
import {
  type ColumnToWrite,
  encodeBatch,
  encodeEnd,
  encodeSchema,
  type FieldToWrite,
} from '../../../src/formats/arrow/ipc-writer.js';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasModules = spawnSync(python, ['-c', 'import pyarrow, polars, duckdb']).status === 0;
const skip = hasModules
  ? false
  : `${python} has no pyarrow, polars or duckdb; SAGITTA_TEST_PYTHON names one that has`;

const SCRIPT = `
import json, sys
import duckdb, polars, pyarrow.ipc, pyarrow.parquet
arrow, parquet = sys.argv[1:3]
def plain(columns):
    return [None if value is None else list(value) for value in columns["vectors.title"]]
stream = pyarrow.ipc.open_stream(open(arrow, "rb")).read_all()
stream.validate(full=True)
table = pyarrow.parquet.read_table(parquet)
table.validate(full=True)
relation = duckdb.connect().sql("select * from read_parquet('%s')" % parquet)
names = list(relation.columns)
print(json.dumps({
    "type": str(stream.schema.field("vectors.title").type),
    "found": {
        "pyarrow, Arrow": plain({name: stream[name].to_pylist() for name in stream.column_names}),
        "pyarrow, Parquet": plain({name: table[name].to_pylist() for name in table.column_names}),
        "Polars, Parquet": plain(polars.read_parquet(parquet).to_dict(as_series=False)),
        "DuckDB, Parquet": plain({"vectors.title": [row[names.index("vectors.title")] for row in relation.fetchall()]}),
    },
}))
`;

interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly vectors: { readonly title?: readonly number[]; readonly image?: readonly number[] };
  readonly metadata: { readonly n: number };
}

/** Of every named vector some have it and some do not, and neighbours differ. */
const ROWS: readonly Row[] = Array.from({ length: 700 }, (_, n) => ({
  id: `v${n}`,
  values: [n, 1],
  vectors: {
    ...(n % 3 === 0 ? {} : { title: [n, n + 0.5, -1] }),
    ...(n % 64 < 40 ? { image: [0.25, n] } : {}),
  },
  metadata: { n },
}));

const SHAPES = { title: { dimension: 3, metric: 'dot' }, image: { dimension: 2 } };
const NDJSON = 'application/x-ndjson';
const ARROW = 'application/vnd.apache.arrow.stream';
const LINES = ROWS.map((row) => `${JSON.stringify(row)}\n`).join('');

function arrowOf(rows: readonly Row[], titleDimension = 3, column = 'vectors.title'): Buffer {
  const fields: FieldToWrite[] = [
    { name: 'id', type: 'utf8' },
    { name: 'values', type: { vectorOf: 2 } },
    { name: column, type: { vectorOf: titleDimension }, isNullable: true },
    { name: 'vectors.image', type: { vectorOf: 2 }, isNullable: true },
    { name: 'n', type: 'int32' },
  ];
  const columns: ColumnToWrite[] = [
    { text: utf8ColumnOf(rows.map(({ id }) => id)), from: 0 },
    { vectors: Float32Array.from(rows.flatMap(({ values }) => values)) },
    nullable(
      rows.map(({ vectors }) => vectors.title),
      titleDimension,
    ),
    nullable(
      rows.map(({ vectors }) => vectors.image),
      2,
    ),
    { numbers: Int32Array.from(rows, ({ metadata }) => metadata.n) },
  ];
  return Buffer.concat([encodeSchema(fields), ...encodeBatch(rows.length, columns), encodeEnd()]);
}

/** Nulls have elements that are no numbers, which nobody may look at. */
function nullable(vectors: readonly (readonly number[] | undefined)[], dimension: number) {
  const presence: Bitmap = createBitmap(vectors.length);
  const values = new Float32Array(vectors.length * dimension).fill(Number.NaN);
  for (const [row, vector] of vectors.entries()) {
    if (vector === undefined) continue;
    values.set(vector, row * dimension);
    setBit(presence, row);
  }
  return { vectors: values, presence };
}

describe('named vectors in streams', () => {
  let server: TestServer;
  const call = (path: string, init: RequestInit = {}) => fetch(`${server.url}/v1${path}`, init);
  const json = async (path: string, body: unknown) =>
    call(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });
  const write = (id: string, body: string | Buffer, type: string) =>
    call(`/collections/${id}/vectors`, { method: 'POST', body, headers: { 'content-type': type } });
  const exported = async (id: string, query: string) => {
    const reply = await call(`/collections/${id}/export?${query}`);
    assert.equal(reply.status, 200);
    return Buffer.from(await reply.arrayBuffer());
  };

  before(async () => {
    server = await startTestServer({ SAGITTA_SEGMENT_ROWS_MAX: '256' });
    for (const id of ['lines', 'arrow', 'again']) {
      const created = await json('/collections', {
        id,
        dimension: 2,
        metric: 'dot',
        vectors: SHAPES,
      });
      assert.equal(created.status, 200);
    }
    for (const [id, body, type] of [
      ['lines', LINES, NDJSON],
      ['arrow', arrowOf(ROWS), ARROW],
    ] as const) {
      const written = await write(id, body, type);
      assert.equal(written.status, 200, await written.text());
    }
  });
  after(() => server.close());

  it('are exported as NDJSON as they were written, from NDJSON and from Arrow', async () => {
    for (const id of ['lines', 'arrow']) {
      const text = (await exported(id, 'format=ndjson')).toString();
      const rows = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      assert.deepEqual(rows, ROWS, id);
    }
  });

  it('are exported as Arrow, which can be written again', async () => {
    const bytes = await exported('lines', 'format=arrow');
    const title = tableFromIPC(bytes).getChild('vectors.title')!;
    for (const [row, { vectors }] of ROWS.entries()) {
      const found = title.get(row) as Iterable<number> | null;
      assert.deepEqual(found === null ? undefined : [...found], vectors.title);
    }
    assert.equal((await write('again', bytes, ARROW)).status, 200);
    assert.deepEqual(
      await exported('again', 'format=ndjson'),
      await exported('lines', 'format=ndjson'),
    );
    const without = tableFromIPC(await exported('lines', 'format=arrow&include_values=false'));
    assert.deepEqual(without.schema.names, ['id', 'metadata']);
  });

  it('read in pyarrow, Polars and DuckDB as they were written', { skip }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-named-'));
    try {
      const paths = ['arrow', 'parquet'].map((format) => join(folder, format));
      writeFileSync(paths[0]!, await exported('lines', 'format=arrow'));
      writeFileSync(paths[1]!, await exported('lines', 'format=parquet'));
      const run = spawnSync(python, ['-c', SCRIPT, ...paths], { encoding: 'utf8' });
      assert.equal(run.status, 0, run.stderr);
      const { type, found } = JSON.parse(run.stdout);
      assert.match(type, /^fixed_size_list<item: float.*\[3\]$/);
      const expected = ROWS.map(({ vectors }) => vectors.title ?? null);
      for (const [reader, titles] of Object.entries(found))
        assert.deepEqual(titles, expected, reader);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('of Arrow may be in lists of variable length', async () => {
    const rows = ROWS.slice(0, 9);
    const list = new List(new Field('item', new Float32(), true));
    const table = new Table({
      id: vectorFromArray(
        rows.map(({ id }) => id),
        new Utf8(),
      ),
      values: vectorFromArray(
        rows.map(({ values }) => values),
        list,
      ),
      'vectors.title': vectorFromArray(
        rows.map(({ vectors }) => vectors.title ?? null),
        list,
      ),
    });
    const id = 'lists';
    const created = await json('/collections', {
      id,
      dimension: 2,
      metric: 'dot',
      vectors: SHAPES,
    });
    assert.equal(created.status, 200);
    const written = await write(id, Buffer.from(tableToIPC(table, 'stream')), ARROW);
    assert.equal(written.status, 200, await written.text());
    const lines = (await exported(id, 'format=ndjson&include_metadata=false')).toString();
    assert.deepEqual(
      lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
      rows.map(({ id: rowId, values, vectors: { title } }) => ({
        id: rowId,
        values,
        vectors: title === undefined ? {} : { title },
      })),
    );
  });

  it('of Arrow that do not fit are refused, with the row', async () => {
    const wrongLength = await write('again', arrowOf(ROWS.slice(1, 2), 4), ARROW);
    const problem = (await wrongLength.json()) as { errors: Record<string, unknown>[] };
    assert.equal(wrongLength.status, 400);
    assert.equal(problem.errors[0]!.code, 'dimension_mismatch');
    assert.equal(problem.errors[0]!.pointer, '/rows/0/vectors/title');
    const unknown = await write('again', arrowOf(ROWS.slice(1, 2), 3, 'vectors.sound'), ARROW);
    const { detail } = (await unknown.json()) as { detail: string };
    assert.equal(unknown.status, 400);
    assert.match(detail, /The column "vectors.sound" is for a named vector/);
  });

  it('are searched by the rows of an Arrow body', async () => {
    const fields: FieldToWrite[] = [{ name: 'vector', type: { vectorOf: 3 } }];
    const columns = [{ vectors: Float32Array.of(1, 0, 0, -1, 0, 0) }];
    const body = Buffer.concat([encodeSchema(fields), ...encodeBatch(2, columns), encodeEnd()]);
    const reply = await call('/collections/lines/query/batch?using=title&top_k=2', {
      method: 'POST',
      body,
      headers: { 'content-type': ARROW },
    });
    assert.equal(reply.status, 200);
    const table = tableFromIPC(Buffer.from(await reply.arrayBuffer()));
    assert.deepEqual([...table.getChild('id')!], ['v698', 'v697', 'v1', 'v2']);
  });

  it('are columns of Arrow replies with values, null in matches without them', async () => {
    const queries = [{ vector: [1, 0, 0], using: 'title', top_k: 90, include_values: true }];
    const table = await batchTable('lines', queries);
    const ids = [...table.getChild('id')!] as string[];
    const rows = ids.map((id) => ROWS[Number(id.slice(1))]!);
    for (const [name, vectorOf] of [
      ['values', ({ values }: Row) => values],
      ['vectors.title', ({ vectors }: Row) => vectors.title],
      ['vectors.image', ({ vectors }: Row) => vectors.image],
    ] as const) {
      assert.deepEqual(plainVectors(table, name), rows.map(vectorOf), name);
    }
    assert.ok(rows.some(({ vectors }) => vectors.image === undefined));
  });

  it('may be all that a collection has, in every format', async () => {
    const bare = ROWS.map(({ values: _, ...row }) => row);
    for (const id of ['bare', 'bare-again']) {
      assert.equal((await json('/collections', { id, vectors: SHAPES })).status, 200);
    }
    const body = bare.map((row) => `${JSON.stringify(row)}\n`).join('');
    const written = await write('bare', body, NDJSON);
    assert.equal(written.status, 200, await written.text());
    const bytes = await exported('bare', 'format=arrow');
    const names = ['id', 'vectors.title', 'vectors.image', 'metadata'];
    assert.deepEqual(tableFromIPC(bytes).schema.names, names);
    const again = await write('bare-again', bytes, ARROW);
    assert.equal(again.status, 200, await again.text());
    const text = (await exported('bare-again', 'format=ndjson')).toString();
    const lines = text.trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as unknown),
      bare,
    );
    const parquet = await exported('bare', 'format=parquet');
    assert.equal(parquet.subarray(0, 4).toString(), 'PAR1');
    const queries = [{ vector: [1, 0, 0], using: 'title', top_k: 1, include_values: true }];
    assert.deepEqual(plainVectors(await batchTable('bare', queries), 'vectors.title'), [
      [698, 698.5, -1],
    ]);
    const refused = await write('bare', arrowOf(ROWS.slice(1, 2)), ARROW);
    const { detail } = (await refused.json()) as { detail: string };
    assert.equal(refused.status, 400);
    assert.match(detail, /"values" is for the unnamed vector, which the collection does not have/);
  });

  async function batchTable(id: string, queries: readonly object[]): Promise<Table> {
    const reply = await call(`/collections/${id}/query/batch`, {
      method: 'POST',
      body: JSON.stringify({ queries }),
      headers: { 'content-type': 'application/json', accept: ARROW },
    });
    assert.equal(reply.status, 200);
    return tableFromIPC(Buffer.from(await reply.arrayBuffer()));
  }
});

/** A column of vectors, undefined for null. */
function plainVectors(table: Table, name: string): (number[] | undefined)[] {
  const column = table.getChild(name)!;
  return Array.from({ length: table.numRows }, (_, row) => {
    const vector = column.get(row) as Iterable<number> | null;
    return vector === null ? undefined : [...vector];
  });
}
