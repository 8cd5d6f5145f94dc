// Exports of named vectors as other tools read them. SAGITTA_TEST_PYTHON names an interpreter with pyarrow, polars
// and duckdb.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';
import { ARROW, arrowOf, LINES, NDJSON, ROWS, SHAPES } from './named-rows.js';

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
});
