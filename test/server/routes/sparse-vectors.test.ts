// Streams with sparse vectors of a real server: exports in NDJSON and Arrow equal what was written.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  type DataType,
  Field,
  Float64,
  Int64,
  List,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

interface Row {
  readonly id: string;
  readonly sparse_vectors: {
    readonly words?: { readonly indices: readonly number[]; readonly values: readonly number[] };
  };
  readonly metadata: { readonly n: number };
}

const ROWS: readonly Row[] = Array.from({ length: 700 }, (_, n) => ({
  id: `v${n}`,
  sparse_vectors:
    n % 3 === 0 ? {} : { words: { indices: [n, n + 7, 4_294_967_295], values: [0.5, -n, 1e-3] } },
  metadata: { n },
}));
const LINES = ROWS.map((row) => `${JSON.stringify(row)}\n`).join('');
const NDJSON = 'application/x-ndjson';
const ARROW = 'application/vnd.apache.arrow.stream';
const INDICES = 'sparse_vectors.words.indices';
const VALUES = 'sparse_vectors.words.values';

const listOf = (type: DataType) => new List(new Field('item', type, true));

/** Lists of 64-bit numbers, as pyarrow creates them; null in rows without the vector. */
function arrowOf(rows: readonly Row[]): Buffer {
  const words = rows.map(({ sparse_vectors: { words: vector } }) => vector);
  const table = new Table({
    id: vectorFromArray(
      rows.map(({ id }) => id),
      new Utf8(),
    ),
    [INDICES]: vectorFromArray(
      words.map((vector) => vector?.indices.map(BigInt) ?? null),
      listOf(new Int64()),
    ),
    [VALUES]: vectorFromArray(
      words.map((vector) => vector?.values ?? null),
      listOf(new Float64()),
    ),
    n: vectorFromArray(
      rows.map(({ metadata }) => metadata.n),
      new Float64(),
    ),
  });
  return Buffer.from(tableToIPC(table, 'stream'));
}

describe('sparse vectors in streams', () => {
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
      const created = await json('/collections', { id, sparse_vectors: { words: {} } });
      assert.equal(created.status, 200, await created.text());
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
    const filter = encodeURIComponent('{"n":{"$gte":10}}');
    for (const query of ['format=arrow', `format=arrow&filter=${filter}`]) {
      const rows = query === 'format=arrow' ? ROWS : ROWS.slice(10);
      const table = tableFromIPC(await exported('lines', query));
      for (const [column, member] of [
        [INDICES, 'indices'],
        [VALUES, 'values'],
      ] as const) {
        const found = table.getChild(column)!;
        for (const [i, { sparse_vectors: vectors }] of rows.entries()) {
          const expected = (vectors.words?.[member] ?? []).map((element) =>
            member === 'values' ? Math.fround(element) : element,
          );
          assert.deepEqual([...(found.get(i) as Iterable<number>)], expected);
        }
      }
    }
    const bytes = await exported('lines', 'format=arrow');
    assert.equal((await write('again', bytes, ARROW)).status, 200);
    assert.deepEqual(
      await exported('again', 'format=ndjson'),
      await exported('lines', 'format=ndjson'),
    );
    const without = tableFromIPC(await exported('lines', 'format=arrow&include_values=false'));
    assert.deepEqual(without.schema.names, ['id', 'metadata']);
  });

  it('are in Arrow replies to queries with values', async () => {
    const sparse = { indices: [1, 2], values: [1, 3] };
    const reply = await call('/collections/lines/query/batch', {
      method: 'POST',
      body: JSON.stringify({ queries: [{ sparse, using: 'words', include_values: true }] }),
      headers: { 'content-type': 'application/json', accept: ARROW },
    });
    assert.equal(reply.status, 200);
    const table = tableFromIPC(Buffer.from(await reply.arrayBuffer()));
    assert.deepEqual([...table.getChild('id')!], ['v2', 'v1']);
    const found = [...table.getChild(INDICES)!].map((row) => [...(row as Iterable<number>)]);
    assert.deepEqual(found, [
      [2, 9, 4_294_967_295],
      [1, 8, 4_294_967_295],
    ]);
  });

  it('of Arrow are refused where their columns do not fit', async () => {
    const column = (rows: readonly unknown[], type: DataType) =>
      vectorFromArray(rows, listOf(type));
    const ids = vectorFromArray(['a', 'b'], new Utf8());
    const indices = column([[1n], [1n, 1n]], new Int64());
    const values = column([[1], [1, 2]], new Float64());
    for (const [columns, code, message] of [
      [{ [INDICES]: indices }, 'invalid_request', /comes without .*values"; expected both/],
      [{ [VALUES]: values }, 'invalid_request', /comes without .*indices"; expected both/],
      [
        { 'sparse_vectors.sound.indices': indices },
        'invalid_request',
        /sparse vector that the collection does not have; expected "sparse_vectors\.words\.indices"/,
      ],
      [{ [INDICES]: indices, [VALUES]: ids }, 'invalid_request', /must hold lists of numbers/],
      [
        { [INDICES]: indices, [VALUES]: values },
        'invalid_vector',
        /1 occurs more than once.*row 1/,
      ],
    ] as const) {
      const table = new Table({ id: ids, ...columns } as unknown as Record<string, typeof ids>);
      const reply = await write('again', Buffer.from(tableToIPC(table, 'stream')), ARROW);
      const problem = (await reply.json()) as { code: string; detail: string };
      assert.equal(problem.code, code);
      assert.match(problem.detail, message);
    }
  });

  it('are left out of Parquet, or refused there', async () => {
    const refused = await call('/collections/lines/export?format=parquet');
    assert.equal(refused.status, 400);
    assert.match(
      await refused.text(),
      /Parquet files do not support sparse vectors such as \\"words\\"/,
    );
    await exported('lines', 'format=parquet&include_values=false');
  });
});
