// Many queries in one request to a real server get the same replies as single ones, in every format, also from rows
// that pyarrow and polars wrote. SAGITTA_TEST_PYTHON names an interpreter with them.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { request as send } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { utf8ColumnOf } from '../../../src/common/utf8-column.js';
import {
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
} from '../../../src/formats/arrow/ipc-writer.js';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

const ARROW = 'application/vnd.apache.arrow.stream';
const NDJSON = 'application/x-ndjson';
const DIMENSION = 8;
const COUNT = 1_500;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies freely
  readonly json: any;
}

/** Small integers, so that every score is exact and many tie. */
const valuesOf = (i: number) =>
  Array.from({ length: DIMENSION }, (_, j) => ((i * (j + 3)) % 7) + 1);

const queryAt = (i: number) => ({
  vector: valuesOf(i * 31 + 5),
  top_k: 1 + (i % 12),
  filter: i % 3 === 0 ? { group: { $lt: i % 5 } } : undefined,
  include_metadata: true,
});

describe('POST /collections/{id}/query/batch', { timeout: 60_000 }, () => {
  let server: TestServer;
  const post = async (
    path: string,
    body: object | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const isBytes = body instanceof Uint8Array;
    const reply = await fetch(`${server.url}/collections/c${path}`, {
      method: 'POST',
      headers: { 'content-type': isBytes ? ARROW : 'application/json', ...headers },
      body: isBytes ? body : JSON.stringify(body),
    });
    const bytes = new Uint8Array(await reply.arrayBuffer());
    const isJson = /json/.test(reply.headers.get('content-type') ?? '');
    const text = Buffer.from(bytes).toString();
    const isLines = reply.headers.get('content-type') === NDJSON;
    return {
      status: reply.status,
      headers: reply.headers,
      bytes,
      json: isLines
        ? text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
        : isJson
          ? JSON.parse(text)
          : undefined,
    };
  };
  const rowsOf = ({ bytes }: Answer) =>
    tableFromIPC(bytes)
      .toArray()
      .map((row) => ({ ...row.toJSON(), query_index: Number(row.query_index) }));
  const refused = async (asking: Promise<Answer>, code: string, pointer?: string) => {
    const { json } = await asking;
    assert.equal(json.code, code, JSON.stringify(json));
    if (pointer !== undefined) assert.equal(json.errors?.[0]?.pointer, pointer);
    return json;
  };
  const bytesOf = (...parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
  const vectorRows = (...indexes: readonly number[]) =>
    encodeRecordBatch(indexes.length, [{ vectors: Float32Array.from(indexes.flatMap(valuesOf)) }]);
  const VECTORS = encodeSchema([{ name: 'vector', type: { vectorOf: DIMENSION } }]);

  before(async () => {
    server = await startTestServer({ SAGITTA_SLOW_QUERY_MS: '1000000' });
    await fetch(`${server.url}/collections`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'c', dimension: DIMENSION, metric: 'dot' }),
    });
    const vectors = Array.from({ length: COUNT }, (_, i) => ({
      id: `v${i}`,
      values: valuesOf(i),
      metadata: { group: i % 5, name: `é ${i}`, long: 2 ** 53 + 2 * i },
    }));
    assert.equal((await post('/vectors', { vectors })).status, 200);
  });
  after(() => server.close());

  it('answers each query as it would be answered alone, as JSON, lines and Arrow', async () => {
    const queries = Array.from({ length: 300 }, (_, i) => queryAt(i));
    const alone = await Promise.all(
      queries.map(async (query) => (await post('/query', query)).json),
    );
    const { status, headers, json } = await post('/query/batch', { queries });
    assert.deepEqual([status, json], [200, { results: alone }]);
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    const lines = await post('/query/batch', { queries }, { accept: NDJSON });
    assert.deepEqual(
      lines.json,
      alone.map((reply, query_index) => ({ query_index, ...reply })),
    );
    const table = await post('/query/batch', { queries }, { accept: ARROW });
    assert.deepEqual(
      rowsOf(table).map((row) => ({ ...row, metadata: JSON.parse(row.metadata) })),
      alone.flatMap(({ matches }, query_index) =>
        matches.map(({ id, score, metadata }: Record<string, unknown>, i: number) => ({
          query_index,
          rank: i + 1,
          id,
          score,
          metadata,
        })),
      ),
    );
  });

  it('reports the phases of a group in Server-Timing', async () => {
    const one = await post('/query/batch', { queries: [queryAt(0), queryAt(1)] });
    assert.match(one.headers.get('server-timing') ?? '', /^filter;dur=.*search;dur=.*total;dur=/);
  });

  it('enforces its limits', async () => {
    const { vector } = queryAt(1);
    const batch = (queries: unknown, accept = 'application/json') =>
      post('/query/batch', { queries } as object, { accept });
    await refused(batch([]), 'invalid_request', '/queries');
    await refused(batch(new Array(1025).fill({ vector })), 'limit_exceeded', '/queries');
    await refused(batch({}), 'invalid_request', '/queries');
    await refused(batch([{ vector }, 7]), 'invalid_request', '/queries/1');
    await refused(batch([{ vector }, { vector: 'a' }]), 'invalid_vector', '/queries/1/vector');
    await refused(batch([{ vector }, { vector: [1] }]), 'dimension_mismatch', '/queries/1/vector');
    await refused(batch([{ vector }, {}]), 'invalid_request', '/queries/1/vector');
    await refused(batch([{ vector, id: 'v1' }]), 'invalid_request', '/queries/0/id');
    await refused(batch([{ vector }, { id: 'x' }]), 'vector_not_found', '/queries/1/id');
    await refused(batch([{ vector, top_k: 10_001 }]), 'limit_exceeded', '/queries/0/top_k');
    await refused(batch([{ vector, topk: 1 }]), 'unknown_parameter', '/queries/0/topk');
    await refused(
      batch([{ vector }, { vector, filter: { a: { $x: 1 } } }]),
      'invalid_filter',
      '/queries/1/filter/a/$x',
    );
    const unlike = [{ vector }, { vector, include_metadata: true }];
    await refused(batch(unlike, ARROW), 'invalid_request', '/queries/1/include_metadata');
    await refused(batch([{ vector, explain: true }], ARROW), 'invalid_request');
    assert.equal((await batch(unlike)).status, 200);
    await refused(
      post('/query/batch?top_k=3', { queries: [{ vector }] }),
      'unknown_parameter',
      '?top_k',
    );
    await refused(batch([{ vector }], 'text/html'), 'not_acceptable');
    await refused(post('/query/batch', Buffer.from('x')), 'invalid_arrow');
  });

  it('repeats the names of queries, and leaves further columns out on request', async () => {
    const count = 600;
    const names = Array.from({ length: count }, (_, i) => `q"${i}é`);
    const vectorType = { vectorOf: DIMENSION } as const;
    const vectors = Float32Array.from(names.flatMap((_, i) => valuesOf(i % COUNT)));
    for (const name of ['query_id', 'id']) {
      const body = bytesOf(
        encodeSchema([
          { name, type: 'utf8' },
          { name: 'vector', type: vectorType },
          { name: 'further', type: 'int32' },
        ]),
        ...encodeRecordBatch(count, [
          { leaf: utf8ColumnOf(names) },
          { vectors },
          { leaf: new Int32Array(count) },
        ]),
        encodeEnd(),
      );
      await refused(post('/query/batch', body), 'unknown_parameter');
      const path = '/query/batch?top_k=2&ignore_columns=true';
      const rows = rowsOf(await post(path, body));
      assert.equal(rows.length, 2 * count);
      for (const { query_index, query_id } of rows) assert.equal(query_id, names[query_index]);
      const lines = (await post(path, body, { accept: NDJSON })).json;
      assert.deepEqual(
        lines.map((line: { query_id: string }) => line.query_id),
        names,
      );
      assert.deepEqual(Object.keys(lines[0]).slice(0, 2), ['query_index', 'query_id']);
    }
    const idRows = bytesOf(
      encodeSchema([
        { name: 'id', type: 'utf8' },
        { name: 'query_id', type: 'utf8' },
      ]),
      ...encodeRecordBatch(1, [{ leaf: utf8ColumnOf(['v3']) }, { leaf: utf8ColumnOf(['three']) }]),
      encodeEnd(),
    );
    const [first] = rowsOf(await post('/query/batch?top_k=1', idRows));
    assert.equal(first!.query_id, 'three');
    assert.notEqual(first!.id, 'v3');
    const long = bytesOf(
      encodeSchema([
        { name: 'id', type: 'utf8' },
        { name: 'query_id', type: 'utf8' },
      ]),
      ...encodeRecordBatch(1, [
        { leaf: utf8ColumnOf(['v3']) },
        { leaf: utf8ColumnOf(['x'.repeat(100_000)]) },
      ]),
      encodeEnd(),
    );
    await refused(post('/query/batch', long), 'limit_exceeded', '/rows/0/query_id');
  });

  it('reads rows as queries and replies with rows', async () => {
    const body = bytesOf(VECTORS, ...vectorRows(1, 2), ...vectorRows(3), encodeEnd());
    const reply = await post('/query/batch?top_k=4&include_values=true', body);
    assert.equal(reply.headers.get('content-type'), ARROW);
    const table = tableFromIPC(reply.bytes);
    assert.equal(table.schema.metadata.get('sequence'), '1');
    assert.deepEqual(
      table.schema.fields.map(({ name, type }) => `${name} ${type}`),
      [
        'query_index Int64',
        'rank Int32',
        'id Utf8',
        'score Float32',
        `values FixedSizeList[${DIMENSION}]<Float32>`,
      ],
    );
    const queries = [1, 2, 3].map((i) => ({
      vector: valuesOf(i),
      top_k: 4,
      include_values: true,
    }));
    const { results } = (await post('/query/batch', { queries })).json;
    assert.deepEqual(
      rowsOf(reply).map(({ values, ...row }) => ({ ...row, values: [...values] })),
      results.flatMap(({ matches }: { matches: object[] }, query_index: number) =>
        matches.map((match, i) => ({ query_index, rank: i + 1, ...match })),
      ),
    );
    const lines = await post('/query/batch?top_k=4&include_values=true', body, { accept: NDJSON });
    assert.deepEqual(
      lines.json.map(({ query_index, ...reply }: { query_index: number }) => reply),
      results,
    );
    await refused(post('/query/batch', body, { accept: 'application/json' }), 'not_acceptable');
    // Without rows there is no reply to read, and a query without matches has no row.
    const empty = await post('/query/batch', bytesOf(VECTORS, encodeEnd()));
    assert.deepEqual([empty.status, tableFromIPC(empty.bytes).numRows], [200, 0]);
    const noLines = bytesOf(VECTORS, encodeEnd());
    assert.deepEqual((await post('/query/batch', noLines, { accept: NDJSON })).json, []);
    const filter = encodeURIComponent('{"group":77}');
    assert.equal(rowsOf(await post(`/query/batch?filter=${filter}`, body)).length, 0);
    const far = await post('/query/batch?metric=euclidean&top_k=1', body);
    assert.equal(rowsOf(far)[0]!.distance, 0);
  });

  it('compares long integers in the filters of rows exactly', async () => {
    const body = bytesOf(
      encodeSchema([
        { name: 'vector', type: { vectorOf: DIMENSION } },
        { name: 'filter', type: 'utf8' },
      ]),
      ...encodeRecordBatch(1, [
        { vectors: Float32Array.from(valuesOf(1)) },
        {
          leaf: utf8ColumnOf(['{"long":{"$gte":9007199254740993,"$lt":9007199254740997}}']),
        },
      ]),
      encodeEnd(),
    );
    const found = rowsOf(await post('/query/batch', body));
    assert.deepEqual(found.map(({ id }) => id).sort(), ['v1', 'v2']);
  });

  it('returns all matches that reach score_threshold, however many', async () => {
    const body = bytesOf(VECTORS, ...vectorRows(1, 2), encodeEnd());
    const found = rowsOf(await post('/query/batch?score_threshold=8.5', body));
    // Every score is above the threshold.
    assert.equal(found.length, 2 * COUNT);
    assert.deepEqual(
      found.map(({ query_index, rank }) => `${query_index} ${rank}`),
      [0, 1].flatMap((i) => Array.from({ length: COUNT }, (_, rank) => `${i} ${rank + 1}`)),
    );
    const { vector } = { vector: valuesOf(1) };
    const ids: string[] = [];
    let page = (await post('/query', { vector, score_threshold: 8.5 })).json;
    for (;;) {
      ids.push(...page.matches.map(({ id }: { id: string }) => id));
      if (!page.has_more) break;
      page = (await post('/query', { cursor: page.next_cursor })).json;
    }
    assert.deepEqual(
      ids,
      found.slice(0, COUNT).map(({ id }) => id),
    );
    const asJson = { queries: [{ vector, score_threshold: 8.5 }] };
    assert.equal(rowsOf(await post('/query/batch', asJson, { accept: ARROW })).length, COUNT);
    const paged = { queries: [{ vector, score_threshold: 8.5, limit: 9 }] };
    assert.equal(rowsOf(await post('/query/batch', paged, { accept: ARROW })).length, 9);
  });

  it('returns the value of each group as JSON text in Arrow', async () => {
    const body = bytesOf(VECTORS, ...vectorRows(1, 2), encodeEnd());
    const found = rowsOf(await post('/query/batch?group_by=group&group_size=2&top_k=3', body));
    const expected: object[] = [];
    for (const [query_index, i] of [1, 2].entries()) {
      const query = { vector: valuesOf(i), group_by: 'group', group_size: 2, top_k: 3 };
      const { matches } = (await post('/query', query)).json;
      assert.equal(matches.length, 6);
      for (const [at, { id, group }] of matches.entries()) {
        expected.push({ query_index, rank: at + 1, id, group: JSON.stringify(group) });
      }
    }
    assert.deepEqual(
      found.map(({ query_index, rank, id, group }) => ({ query_index, rank, id, group })),
      expected,
    );
    const mixed = { queries: [{ vector: valuesOf(1), group_by: 'name' }, { vector: valuesOf(2) }] };
    const reply = post('/query/batch', mixed, { accept: ARROW });
    await refused(reply, 'invalid_request', '/queries/1/group_by');
    const faceted = { queries: [{ vector: valuesOf(1), facets: [{ path: 'name' }] }] };
    const refusal = post('/query/batch', faceted, { accept: ARROW });
    await refused(refusal, 'invalid_request', '/queries/0/facets');
    // The groups need several pages, of at most 10 000 matches each.
    const ranged = {
      vector: valuesOf(1),
      score_threshold: 8.5,
      group_by: 'group',
      group_size: 5_000,
    };
    const all = rowsOf(await post('/query/batch', { queries: [ranged] }, { accept: ARROW }));
    assert.equal(all.length, COUNT);
  });

  it('returns the sequence of each match in Arrow, where it is asked for', async () => {
    const query = { vector: valuesOf(1), top_k: 3, include_sequence: true };
    const { matches } = (await post('/query', query)).json;
    const found = rowsOf(await post('/query/batch', { queries: [query] }, { accept: ARROW }));
    assert.deepEqual(
      found.map(({ id, sequence }) => ({ id, sequence })),
      matches.map(({ id, sequence }: { id: string; sequence: number }) => ({ id, sequence })),
    );
    const without = { vector: valuesOf(1), top_k: 3 };
    const plain = rowsOf(await post('/query/batch', { queries: [without] }, { accept: ARROW }));
    assert.ok(plain.every((row) => !('sequence' in row)));
    const mixed = post('/query/batch', { queries: [query, without] }, { accept: ARROW });
    await refused(mixed, 'invalid_request', '/queries/1/include_sequence');
  });

  it('names the invalid row and unknown columns', async () => {
    const zero = encodeRecordBatch(1, [{ vectors: new Float32Array(DIMENSION) }]);
    const notFinite = encodeRecordBatch(1, [
      { vectors: new Float32Array(DIMENSION).fill(Infinity) },
    ]);
    const rows = (...bad: readonly Uint8Array[]) => bytesOf(VECTORS, ...bad, encodeEnd());
    await refused(
      post('/query/batch?metric=cosine', rows(...vectorRows(1, 2), ...zero)),
      'invalid_vector',
      '/rows/2/vector',
    );
    await refused(
      post('/query/batch', rows(...vectorRows(1), ...notFinite)),
      'invalid_vector',
      '/rows/1/vector',
    );
    const ids = (...texts: string[]) => {
      const bytes = Buffer.from(texts.join(''));
      const offsets = Int32Array.from([
        0,
        ...texts.map((_, i) => texts.slice(0, i + 1).join('').length),
      ]);
      return bytesOf(
        encodeSchema([{ name: 'id', type: 'utf8' }]),
        ...encodeRecordBatch(texts.length, [{ leaf: { offsets, bytes } }]),
        encodeEnd(),
      );
    };
    const found = rowsOf(await post('/query/batch?top_k=2', ids('v3', 'v4')));
    const { results } = (
      await post('/query/batch', {
        queries: [
          { id: 'v3', top_k: 2 },
          { id: 'v4', top_k: 2 },
        ],
      })
    ).json;
    assert.deepEqual(
      found.map(({ id }) => id),
      results.flatMap(({ matches }: { matches: { id: string }[] }) => matches.map(({ id }) => id)),
    );
    await refused(post('/query/batch', ids('v3', 'none')), 'vector_not_found', '/rows/1/id');
    const other = encodeSchema([
      { name: 'vector', type: { vectorOf: DIMENSION } },
      { name: 'topk', type: 'int32' },
    ]);
    await refused(post('/query/batch', bytesOf(other, encodeEnd())), 'unknown_parameter');
    const both = encodeSchema([
      { name: 'vector', type: { vectorOf: DIMENSION } },
      { name: 'id', type: 'utf8' },
      { name: 'query_id', type: 'utf8' },
    ]);
    await refused(post('/query/batch', bytesOf(both, encodeEnd())), 'invalid_request');
    const none = encodeSchema([{ name: 'x', type: { vectorOf: DIMENSION } }]);
    await refused(post('/query/batch', bytesOf(none, encodeEnd())), 'invalid_request');
    const named = bytesOf(none, ...vectorRows(1), encodeEnd());
    assert.equal((await post('/query/batch?vector_column=x', named)).status, 200);
    const short = encodeSchema([{ name: 'vector', type: { vectorOf: 2 } }]);
    const shortRow = encodeRecordBatch(1, [{ vectors: Float32Array.of(1, 2) }]);
    await refused(
      post('/query/batch', bytesOf(short, ...shortRow, encodeEnd())),
      'dimension_mismatch',
      '/rows/0/vector',
    );
  });

  it('answers a query before the next one has been sent', async () => {
    const sending = send(`${server.url}/collections/c/query/batch?top_k=1`, {
      method: 'POST',
      headers: { 'content-type': ARROW, accept: NDJSON },
    });
    const lines: string[] = [];
    let arrive = () => {};
    sending.on('response', (reply) => {
      reply.setEncoding('utf8').on('data', (chunk: string) => {
        lines.push(...chunk.split('\n').filter((line) => line !== ''));
        arrive();
      });
      reply.on('end', () => arrive());
    });
    sending.write(VECTORS);
    for (let i = 1; i <= 3; i++) {
      const arrived = new Promise<void>((resolve) => {
        arrive = resolve;
      });
      sending.write(bytesOf(...vectorRows(i)));
      await arrived;
      assert.equal(lines.length, i);
      assert.equal(JSON.parse(lines[i - 1]!).query_index, i - 1);
    }
    sending.end(encodeEnd());
    await new Promise<void>((resolve) => {
      sending.on('close', resolve);
    });
  });

  it('cuts the reply when the collection is deleted meanwhile', async () => {
    const url = `${server.url}/collections`;
    const headers = { 'content-type': 'application/json' };
    const made = { id: 'gone', dimension: DIMENSION, metric: 'dot' };
    await fetch(url, { method: 'POST', headers, body: JSON.stringify(made) });
    const one = JSON.stringify({ id: 'a', values: valuesOf(1) });
    await fetch(`${url}/gone/vectors`, { method: 'POST', headers, body: one });
    const sending = send(`${url}/gone/query/batch`, {
      method: 'POST',
      headers: { 'content-type': ARROW, accept: NDJSON },
    });
    const text = await new Promise<string>((resolve) => {
      let received = '';
      sending.on('error', () => {});
      sending.on('response', (reply) => {
        reply.on('error', () => {}).on('close', () => resolve(received));
        reply.setEncoding('utf8').on('data', async (chunk: string) => {
          const isFirst = received === '';
          received += chunk;
          if (!isFirst) return;
          await fetch(`${url}/gone`, { method: 'DELETE' });
          sending.write(bytesOf(...vectorRows(2)));
        });
      });
      sending.write(bytesOf(VECTORS, ...vectorRows(1)));
    });
    const lines = text.trim().split('\n');
    assert.equal(lines.length, 2, text);
    assert.equal(JSON.parse(lines[1]!).error.code, 'collection_not_found');
  });

  const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
  const modules = 'import pyarrow, polars, requests';
  const hasModules = spawnSync(python, ['-c', modules]).status === 0;
  const skip = hasModules ? false : `${python} lacks pyarrow, polars or requests`;

  it('takes what pyarrow and polars write, and is read by them', { skip }, async () => {
    const { promisify } = await import('node:util');
    const { execFile } = await import('node:child_process');
    const script = `
import io, json, sys
import numpy as np, polars as pl, pyarrow as pa, pyarrow.parquet, requests
url = sys.argv[1] + "/collections/c/query/batch"
D = ${DIMENSION}
def values(i): return [((i * (j + 3)) % 7) + 1 for j in range(D)]
def stream(table, **options):
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=100)
    return out.getvalue()
def ask(body, params={}):
    reply = requests.post(url, data=body, params=params, headers={"content-type": "${ARROW}"})
    assert reply.status_code == 200, reply.text
    table = pa.ipc.open_stream(reply.content).read_all()
    table.validate(full=True)
    return table
N = 333
rows = [values(i * 31 + 5) for i in range(N)]
top_k = [None if i % 4 == 0 else 1 + i % 12 for i in range(N)]
filters = [json.dumps({"group": {"$lt": i % 5}}) if i % 3 == 0 else None for i in range(N)]
scores = [60.5 if i % 7 == 0 else None for i in range(N)]
metrics = ["euclidean" if i % 5 == 0 else None for i in range(N)]
def queries():
    made = []
    for i in range(N):
        query = {"vector": rows[i], "top_k": 7 if top_k[i] is None else top_k[i]}
        if filters[i]: query["filter"] = json.loads(filters[i])
        if scores[i]: query["score_threshold"] = scores[i]
        if metrics[i]: query["metric"] = metrics[i]
        made.append(query)
    return made
expected = requests.post(url, json={"queries": queries()}).json()["results"]
want = [(i, rank + 1, m["id"], np.float32(m["score"])) for i, r in enumerate(expected) for rank, m in enumerate(r["matches"])]
flat = pa.array(np.array(rows).ravel())
def table(vectors, number, text):
    return pa.table({"vector": vectors, "top_k": pa.array(top_k, number), "filter": pa.array(filters, text),
        "score_threshold": pa.array(scores, pa.float64()), "metric": pa.array(metrics).dictionary_encode()})
vectors32 = pa.FixedSizeListArray.from_arrays(flat.cast(pa.float32()), D)
forms = {
    "plain": stream(table(vectors32, pa.int64(), pa.string())),
    "lists": stream(table(pa.array([[float(x) for x in row] for row in rows], pa.list_(pa.float64())), pa.uint8(), pa.large_string())),
    "zstd": stream(table(vectors32, pa.int32(), pa.string_view()), compression="zstd"),
    "lz4": stream(table(vectors32, pa.int16(), pa.string()), compression="lz4"),
    "sliced": stream(pa.concat_tables([table(vectors32, pa.int64(), pa.string()).slice(0, 50), table(vectors32, pa.int64(), pa.string()).slice(50)])),
}
out = io.BytesIO()
pl.DataFrame({"vector": pl.Series(rows, dtype=pl.Array(pl.Float32, D)), "top_k": top_k, "filter": filters, "score_threshold": scores, "metric": metrics}).write_ipc_stream(out)
forms["polars"] = out.getvalue()
for name, body in forms.items():
    found = ask(body, {"top_k": 7})
    got = list(zip(*(found[c].to_pylist() for c in ["query_index", "rank", "id"]), found["score"].to_numpy()))
    assert got == want, (name, len(got), len(want), got[:3], want[:3])
assert pl.read_ipc_stream(io.BytesIO(requests.post(url, data=forms["plain"], headers={"content-type": "${ARROW}"}).content)).height > 0
def asked(accept):
    headers = {"content-type": "${ARROW}", "accept": accept}
    return requests.post(url, data=forms["plain"], params={"top_k": 7}, headers=headers).content
parquet, csv = asked("application/vnd.apache.parquet"), asked("text/csv")
for name, found in {
    "pyarrow, Parquet": pl.from_arrow(pa.parquet.read_table(io.BytesIO(parquet))),
    "Polars, Parquet": pl.read_parquet(io.BytesIO(parquet)),
    "Polars, CSV": pl.read_csv(io.BytesIO(csv), schema_overrides={"score": pl.Float32}),
}.items():
    got = list(zip(*(found[c].to_list() for c in ["query_index", "rank", "id"]), found["score"].to_numpy()))
    assert got == want, (name, len(got), len(want), got[:3], want[:3])
def refused(table, pointer):
    reply = requests.post(url, data=stream(table), headers={"content-type": "${ARROW}"}).json()
    assert reply["errors"][0]["pointer"] == pointer, reply
one = vectors32.slice(0, 2)
refused(pa.table({"vector": one, "top_k": [1, 0]}), "/rows/1/top_k")
refused(pa.table({"vector": one, "top_k": [10001, 1]}), "/rows/0/top_k")
refused(pa.table({"vector": one, "filter": ["{}", "{"]}), "/rows/1/filter")
refused(pa.table({"vector": one, "filter": ["[1]", None]}), "/rows/0/filter")
refused(pa.table({"vector": one, "filter": ["{\\"a\\": {\\"$q\\": 1}}", None]}), "/rows/0/filter/a/$q")
refused(pa.table({"vector": one, "metric": ["dot", "l2"]}), "/rows/1/metric")
refused(pa.table({"vector": one, "score_threshold": [1.0, float("nan")]}), "/rows/1/score_threshold")
refused(pa.table({"vector": pa.array([rows[0], None], pa.list_(pa.float32()))}), "/rows/1/vector")
print(len(want))
`;
    const { stdout } = await promisify(execFile)(python, ['-c', script, server.url]);
    assert.ok(Number(stdout) > 1_000, stdout);
  });
});
