// Exports of a real server with segments in shared memory: clients and readers get exactly what was written.
// SAGITTA_TEST_PYTHON names an interpreter with pyarrow, polars and duckdb.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { get as getHttps } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { createRandom } from '../../database/harness.js';
import { createAuthority, issueForServer } from '../../support/certificates.js';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';
import { until, writeFiles } from '../secure-service.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasModules = spawnSync(python, ['-c', 'import pyarrow, polars, duckdb']).status === 0;
const skip = hasModules
  ? false
  : `${python} has no pyarrow, polars or duckdb; SAGITTA_TEST_PYTHON names one that has`;

const SCRIPT = `
import json, struct, sys
import duckdb, polars, pyarrow, pyarrow.parquet
arrow, parquet, rows = sys.argv[1:4]
def plain(columns):
    return {
        "id": list(columns["id"]),
        "values": [struct.pack("<%df" % len(row), *row).hex() for row in columns["values"]],
        "metadata": list(columns["metadata"]),
    }
def of_table(table):
    table.validate(full=True)
    return plain({name: table[name].to_pylist() for name in table.column_names})
def of_duckdb(relation):
    rows = relation.fetchall()
    return plain({name: [row[i] for row in rows] for i, name in enumerate(relation.columns)})
stream = pyarrow.ipc.open_stream(open(arrow, "rb")).read_all()
connection = duckdb.connect()
print(json.dumps({
    "types": {field.name: str(field.type) for field in stream.schema},
    "sequence": stream.schema.metadata[b"sequence"].decode(),
    "found": {
        "pyarrow, Arrow": of_table(stream),
        "pyarrow, Parquet": of_table(pyarrow.parquet.read_table(parquet)),
        "Polars, Arrow": plain(polars.read_ipc_stream(arrow).to_dict(as_series=False)),
        "Polars, Parquet": plain(polars.read_parquet(parquet).to_dict(as_series=False)),
        "DuckDB, Arrow": of_duckdb(connection.sql("select * from stream")),
        "DuckDB, Parquet": of_duckdb(connection.sql("select * from read_parquet('%s')" % parquet)),
    },
    "lines": [json.loads(line)["id"] for line in open(rows, encoding="utf-8")],
}))
`;

const DIMENSION = 40;
const JSON_TYPE = { 'content-type': 'application/json' };

interface Written {
  readonly id: string;
  readonly values: Float32Array;
  readonly metadata: string;
}

describe('an export', () => {
  let server: TestServer;
  let rows: Written[];
  const call = (path: string, init: RequestInit = {}) => fetch(`${server.url}/v1${path}`, init);
  const exported = async (query: string, collection = 'c') => {
    const reply = await call(`/collections/${collection}/export?${query}`);
    const bytes = Buffer.from(await reply.arrayBuffer());
    assert.equal(reply.status, 200, bytes.toString().slice(0, 500));
    return { bytes, headers: reply.headers };
  };

  before(async () => {
    server = await startTestServer({ SAGITTA_SEGMENT_ROWS_MAX: '512' });
    rows = await fill(server.url, 'c', 1_500);
  });
  after(() => server.close());

  it('reads in pyarrow, Polars and DuckDB as it was written', { skip }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-export-'));
    try {
      const paths: string[] = [];
      for (const format of ['arrow', 'parquet', 'ndjson']) {
        const path = join(folder, format);
        writeFileSync(path, (await exported(`format=${format}`)).bytes);
        paths.push(path);
      }
      const options = { encoding: 'utf8', maxBuffer: 2 ** 28 } as const;
      const run = spawnSync(python, ['-c', SCRIPT, ...paths], options);
      assert.equal(run.status, 0, run.stderr);
      const { types, sequence, found, lines } = JSON.parse(run.stdout);
      const expected = {
        id: rows.map(({ id }) => id),
        values: rows.map(({ values }) => Buffer.from(values.buffer).toString('hex')),
        metadata: rows.map(({ metadata }) => metadata),
      };
      for (const [reader, columns] of Object.entries(found)) {
        assert.deepEqual(columns, expected, reader);
      }
      assert.deepEqual(lines, expected.id);
      assert.match(types.values, /^fixed_size_list<item: float.*\[40\]$/);
      assert.deepEqual([types.id, types.metadata], ['string', 'string']);
      const record = (await (await call('/collections/c')).json()) as { sequence: number };
      assert.equal(Number(sequence), record.sequence);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('as NDJSON can be written again and yields the same collection', async () => {
    const { bytes, headers } = await exported('format=ndjson');
    assert.equal(headers.get('content-type'), 'application/x-ndjson');
    const lines = bytes.toString().trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => Float32Array.from(JSON.parse(line).values)),
      rows.map(({ values }) => values),
    );
    // Verbatim, except for line breaks between tokens.
    for (const [i, { metadata }] of rows.entries()) {
      assert.ok(lines[i]!.endsWith(`,"metadata":${metadata.replace(/\r|\n/g, ' ')}}`), lines[i]);
    }
    await create(server.url, 'again');
    await write(server.url, 'again', lines);
    const second = await exported('format=ndjson', 'again');
    assert.equal(Buffer.compare(second.bytes, bytes), 0);
  });

  it('has the rows that pass the filter and the requested columns', async () => {
    const filter = encodeURIComponent('{"n":{"$lt":20}}');
    const { bytes } = await exported(`filter=${filter}&include_values=false`);
    const table = tableFromIPC(bytes);
    const wanted = rows.filter(({ metadata }) => JSON.parse(metadata).n < 20);
    assert.deepEqual(table.schema.names, ['id', 'metadata']);
    assert.deepEqual(
      [...table].map((row) => row!.toJSON()),
      wanted.map(({ id, metadata }) => ({ id, metadata })),
    );
    const ids = await exported(
      `filter=${filter}&include_values=false&include_metadata=false&format=ndjson`,
    );
    assert.equal(
      ids.bytes.toString(),
      wanted.map(({ id }) => `{"id":${JSON.stringify(id)}}\n`).join(''),
    );
    const none = await exported(`filter=${encodeURIComponent('{"n":-1}')}`);
    assert.equal(tableFromIPC(none.bytes).numRows, 0);
  });

  it('has the requested format and a file name', async () => {
    const typeOf = async (query: string, accept?: string) => {
      const headers = accept === undefined ? {} : { accept };
      const reply = await call(`/collections/c/export?${query}`, { headers });
      await reply.arrayBuffer();
      return `${reply.status} ${reply.headers.get('content-type')} ${reply.headers.get('content-disposition')}`;
    };
    const arrow = '200 application/vnd.apache.arrow.stream attachment; filename="c.arrows"';
    const lines = '200 application/x-ndjson attachment; filename="c.ndjson"';
    const parquet = '200 application/vnd.apache.parquet attachment; filename="c.parquet"';
    assert.equal(await typeOf(''), arrow);
    assert.equal(await typeOf('', 'application/x-ndjson'), lines);
    assert.equal(await typeOf('format=parquet', '*/*'), parquet);
    assert.equal(await typeOf('format=ndjson', 'application/*'), lines);
    assert.match(await typeOf('format=ndjson', 'application/vnd.apache.parquet'), /^406 /);
    assert.match(await typeOf('', 'application/json'), /^406 /);
    assert.equal(await typeOf('', 'text/*'), '200 text/csv attachment; filename="c.csv"');
    assert.match(await typeOf('format=xlsx'), /^400 /);
    assert.match(await typeOf('columns=id'), /^400 /);
    assert.match(await typeOf(`filter=${encodeURIComponent('{"n":{"$x":1}}')}`), /^400 /);
  });

  it('is cancelled when its client disconnects', async () => {
    const { port, hostname } = new URL(server.url);
    const gauges = async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      const names = ['sagitta_exports_in_progress', 'sagitta_streams_in_flight'];
      return names.map((name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)![1]));
    };
    await create(server.url, 'wide', 4_096);
    await fill(server.url, 'wide', 700, 4_096);
    const socket = connect({ port: Number(port), host: hostname });
    socket.write('GET /v1/collections/wide/export HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await new Promise((resolve) => socket.once('readable', resolve));
    await until(async () => (await gauges()).every((count) => count === 1));
    socket.destroy();
    await until(async () => (await gauges()).every((count) => count === 0));
    await call('/collections/wide', { method: 'DELETE' });
  });
});

describe('an export behind TLS', () => {
  it('is the same over HTTP/1.1 and HTTP/2', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-export-tls-'));
    const authority = await createAuthority();
    await writeFiles(folder, await issueForServer(authority));
    const plain = await startTestServer({ SAGITTA_SEGMENT_ROWS_MAX: '512' });
    const secure = await startTestServer({
      SAGITTA_SEGMENT_ROWS_MAX: '512',
      SAGITTA_TLS_CERT: join(folder, 'cert.pem'),
      SAGITTA_TLS_KEY: join(folder, 'key.pem'),
    });
    try {
      const ca = authority.cert;
      const expected = await fill(plain.url, 'c', 600, 512);
      const whole = await (await fetch(`${plain.url}/v1/collections/c/export`)).arrayBuffer();
      const post = (path: string, body: string) => overHttp2(secure.url, ca, path, body);
      await post('/v1/collections', JSON.stringify({ id: 'c', dimension: 512, metric: 'dot' }));
      const lines = expected.map(lineOf);
      for (let at = 0; at < lines.length; at += 100) {
        await post('/v1/collections/c/vectors', `{"vectors":[${lines.slice(at, at + 100)}]}`);
      }
      const path = '/v1/collections/c/export';
      const one = await overHttp1(secure.url, ca, path);
      const two = await overHttp2(secure.url, ca, path);
      const values = (bytes: Uint8Array) =>
        [...tableFromIPC(bytes)].map((row) => [row!.id, row!.metadata, ...row!.values]);
      assert.equal(Buffer.compare(one, two), 0);
      assert.deepEqual(values(one), values(new Uint8Array(whole)));
    } finally {
      await secure.close();
      await plain.close();
      rmSync(folder, { recursive: true });
    }
  });
});

/** Writes some rows twice and deletes some, so that segments have holes. Returns the remaining rows in order. */
async function fill(
  url: string,
  id: string,
  count: number,
  dimension = DIMENSION,
): Promise<Written[]> {
  await create(url, id, dimension);
  const random = createRandom(17);
  const special = [0, -0, 1e-45, 3.4028234663852886e38, -1.17549435e-38, 0.1, 16777217, 1 / 3];
  const make = (n: number): Written => ({
    id: n % 7 === 0 ? `ä "${n}" \\` : `row-${n}`,
    values: Float32Array.from({ length: dimension }, (_, i) =>
      i < special.length ? special[(n + i) % special.length]! : random() - 0.5,
    ),
    metadata: n % 3 === 0 ? `{ "n" : ${n},\r\n "x":1.50e1 ,"t":"ä\\n\\u00e4"}` : `{"n":${n}}`,
  });
  const rows = Array.from({ length: count }, (_, n) => make(n));
  await write(url, id, rows.map(lineOf));
  const again = Array.from({ length: 40 }, (_, n) => make(n * 5));
  await write(url, id, again.map(lineOf));
  const gone = rows.filter((_, n) => n % 50 === 3).map((row) => row.id);
  await post(url, `/collections/${id}/vectors/delete`, JSON.stringify({ ids: gone }));
  const moved = new Set(again.map((row) => row.id));
  return [...rows.filter((row) => !moved.has(row.id)), ...again].filter(
    (row) => !gone.includes(row.id),
  );
}

function lineOf({ id, values, metadata }: Written): string {
  const base64 = Buffer.from(values.buffer).toString('base64');
  return `{"id":${JSON.stringify(id)},"values":"${base64}","metadata":${metadata}}`;
}

async function create(url: string, id: string, dimension = DIMENSION): Promise<void> {
  await post(
    url,
    '/collections?if_not_exists=true',
    JSON.stringify({ id, dimension, metric: 'dot' }),
  );
}

async function write(url: string, id: string, lines: readonly string[]): Promise<void> {
  for (let at = 0; at < lines.length; at += 500) {
    await post(url, `/collections/${id}/vectors`, `{"vectors":[${lines.slice(at, at + 500)}]}`);
  }
}

async function post(url: string, path: string, body: string): Promise<void> {
  const reply = await fetch(`${url}/v1${path}`, { method: 'POST', headers: JSON_TYPE, body });
  assert.equal(reply.status, 200, await reply.text());
}

function overHttp1(url: string, ca: string, path: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    getHttps(url + path, { ca }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on('data', (chunk: Buffer) => chunks.push(chunk));
      reply.on('end', () => resolve(Buffer.concat(chunks)));
    }).on('error', reject);
  });
}

async function overHttp2(url: string, ca: string, path: string, body?: string): Promise<Buffer> {
  const session = connectHttp2(url, { ca });
  const method = body === undefined ? 'GET' : 'POST';
  const stream = session.request({ ':method': method, ':path': path, ...JSON_TYPE });
  stream.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  session.close();
  return Buffer.concat(chunks);
}
