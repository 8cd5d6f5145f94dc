// Streams and files with named vectors of a real server: exports in any format equal what was written in any
// format. SAGITTA_TEST_PYTHON names an interpreter with pyarrow, polars and duckdb.

import assert from 'node:assert/strict';
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
import {
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
  type FieldToWrite,
} from '../../../src/formats/arrow/ipc-writer.js';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';
import { ARROW, arrowOf, LINES, NDJSON, ROWS, type Row, SHAPES } from './named-rows.js';

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
    const body = Buffer.concat([
      encodeSchema(fields),
      ...encodeRecordBatch(2, columns),
      encodeEnd(),
    ]);
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
