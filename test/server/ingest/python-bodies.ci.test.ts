// Bodies that pyarrow, Polars and DuckDB wrote, sent by Python to a real server.
// SAGITTA_TEST_PYTHON names an interpreter that has them.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { startTestServer, type TestServer } from '../../support/server-in-process.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const lacks = (modules: string) =>
  spawnSync(python, ['-c', `import requests, ${modules}`]).status === 0
    ? false
    : `${python} has no requests, ${modules}; SAGITTA_TEST_PYTHON names one that has`;

const PREFIX = `
import sys, json, io, requests
url = sys.argv[1]
def create(id, dimension):
    assert requests.post(url + "/v1/collections", json={"id": id, "dimension": dimension, "metric": "cosine"}).status_code == 200
def send(id, body, **query):
    reply = requests.post(f"{url}/v1/collections/{id}/vectors", params=query, data=body,
                          headers={"content-type": "application/vnd.apache.arrow.stream"})
    return reply.status_code, reply.json()
def get(id, vector):
    return requests.get(f"{url}/v1/collections/{id}/vectors/{vector}").json()
`;

const PYARROW = `
import pyarrow as pa, numpy as np
create("pa", 4)
rng = np.random.default_rng(7)
values = rng.standard_normal((3000, 4), dtype=np.float32)
table = pa.table({
    "id": pa.array([f"p{i}" for i in range(3000)], pa.large_string()).dictionary_encode(),
    "embedding": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 4),
    "metadata": pa.array([{"n": i, "tags": ["a", None]} for i in range(3000)]),
    "year": pa.array([1990 + i % 30 for i in range(3000)], pa.int64()),
    "when": pa.array([1700000000000 + i for i in range(3000)], pa.timestamp("ms", tz="UTC")),
})
def body(compression):
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.slice(5), max_chunksize=1000)
    return sink.getvalue()
for compression in [None, "lz4", "zstd"]:
    status, reply = send("pa", body(compression))
    assert (status, reply.get("upserted_count")) == (200, 2995), reply
# While it is made, of a length that nobody knows.
def batches():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=500):
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0); sink.truncate()
    yield sink.getvalue()
status, reply = send("pa", batches())
assert (status, reply["inserted_count"], reply["updated_count"]) == (200, 5, 2995), reply
row = get("pa", "p42")
assert row["metadata"] == {"n": 42, "tags": ["a", None], "year": 2002, "when": "2023-11-14T22:13:20.042Z"}, row
assert np.array_equal(np.array(row["values"], np.float32), values[42])
half = pa.table({"id": pa.array([1, 2]), "values": pa.array(values[:2].astype(np.float16).tolist(), pa.list_(pa.float16()))})
sink = io.BytesIO()
with pa.ipc.new_stream(sink, half.schema) as writer: writer.write_table(half)
assert send("pa", sink.getvalue())[0] == 200
assert np.array_equal(np.array(get("pa", "2")["values"], np.float32), values[1].astype(np.float16).astype(np.float32))
bad = pa.table({"id": ["a", "b"], "values": pa.array([[1.0, 2, 3, 4], [1.0, None, 3, 4]])})
sink = io.BytesIO()
with pa.ipc.new_stream(sink, bad.schema) as writer: writer.write_table(bad)
status, reply = send("pa", sink.getvalue())
assert (status, reply["code"], reply["errors"][0]["pointer"]) == (400, "invalid_vector", "/rows/1/values"), reply
print("ok")
`;

const POLARS = `
import polars as pl
create("pl", 2)
frame = pl.DataFrame({"id": [f"q{i}" for i in range(100)], "vector": [[float(i), 1.0] for i in range(100)], "kind": ["x", "ä"] * 50},
                     schema_overrides={"vector": pl.Array(pl.Float32, 2)})
for level in [None, pl.CompatLevel.oldest()]:
    for compression in ["uncompressed", "lz4", "zstd"]:
        sink = io.BytesIO()
        frame.write_ipc_stream(sink, compression=compression, compat_level=level)
        status, reply = send("pl", sink.getvalue())
        assert (status, reply.get("upserted_count")) == (200, 100), reply
row = get("pl", "q7")
assert (row["values"], row["metadata"]) == ([7, 1], {"kind": "ä"}), row
print("ok")
`;

const DUCKDB = `
import duckdb, pyarrow as pa
create("db", 3)
found = duckdb.sql("select 'd' || i as key, [i, 1, 2]::float[3] as e5, i % 10 as n, (i * 1.5)::decimal(10, 2) as price from range(5000) t(i)")
reader = found.to_arrow_reader(1024) if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader(1024)
sink = io.BytesIO()
with pa.ipc.new_stream(sink, reader.schema) as writer:
    for batch in reader: writer.write_batch(batch)
status, reply = send("db", sink.getvalue(), id_column="key", vector_column="e5", mode="insert")
assert (status, reply.get("inserted_count")) == (200, 5000), reply
row = get("db", "d4999")
assert (row["values"], row["metadata"]) == ([4999, 1, 2], {"n": 9, "price": 7498.5}), row
status, reply = send("db", sink.getvalue(), id_column="key", vector_column="e5", mode="insert")
assert (status, reply["code"], reply["committed_count"]) == (409, "vector_exists", 0), reply
print("ok")
`;

describe('an Arrow body', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });
  after(() => server.close());

  for (const [name, modules, script] of [
    ['pyarrow', 'pyarrow, numpy', PYARROW],
    ['Polars', 'polars', POLARS],
    ['DuckDB', 'duckdb, pyarrow', DUCKDB],
  ] as const) {
    it(`of ${name} is taken as it is written`, { skip: lacks(modules) }, async () => {
      const run = promisify(execFile)(python, ['-c', PREFIX + script, server.url]);
      assert.equal((await run).stdout, 'ok\n');
    });
  }
});
