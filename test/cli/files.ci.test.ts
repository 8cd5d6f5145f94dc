// Import and export of files against a real server: the tests import files written by other programs, read exported
// files with them, and compare the results of query files with numpy.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runPython, skipWithout } from '../readers/python-files.js';
import { emptyServer } from '../support/shared-server.js';
import { type CommandOptions, type CommandResult, makeFolder, run } from './command.js';

const skip = skipWithout('pyarrow', 'polars', 'duckdb', 'numpy', 'h5py');

const WRITE = `
import json, h5py, numpy as np, pyarrow as pa, pyarrow.parquet as pq
random = np.random.default_rng(6)
values = random.standard_normal((300, 8)).astype(np.float32)
queries = random.standard_normal((40, 8)).astype(np.float32)
metadata = [{"n": n, "even": n % 2 == 0, "text": 'a,"b"\\nä'} for n in range(300)]
pq.write_table(pa.table({
  "key": [f"k{n}" for n in range(300)],
  "embedding": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 8),
  "n": [m["n"] for m in metadata], "even": [m["even"] for m in metadata], "text": [m["text"] for m in metadata],
}), "rows.parquet", compression="zstd", row_group_size=128)
distances = ((queries[:, None].astype(np.float64) - values[None]) ** 2).sum(-1)
nearest = np.argsort(distances, axis=1)[:, :10]
with h5py.File("bench.hdf5", "w") as f:
  f["train"], f["test"], f["neighbors"] = values, queries, nearest.astype(np.int32)
np.save("queries.npy", queries)
wrong = nearest.copy(); wrong[:, 9] = 299 - np.argsort(distances[:, ::-1], axis=1)[:, -1]
with open("wrong.ivecs", "wb") as f:
  for row in wrong: f.write(np.int32(10).tobytes() + row.astype(np.int32).tobytes())
`;

const READ = `
import duckdb, json, h5py, numpy as np, polars as pl, pyarrow as pa, pyarrow.feather as pf, pyarrow.parquet as pq
values = h5py.File("bench.hdf5")["train"][:]
metadata = [{"n": n, "even": n % 2 == 0, "text": 'a,"b"\\nä'} for n in range(300)]
ids = [f"k{n}" for n in range(300)]

def check(table, name):
  assert table["id"].to_pylist() == ids, name
  assert [json.loads(text) for text in table["metadata"].to_pylist()] == metadata, name
  assert np.array_equal(np.array(table["values"].to_pylist(), dtype=np.float32), values), name

check(pf.read_table("out.arrow"), "arrow")
check(pa.ipc.open_stream("out.arrows").read_all(), "arrows")
check(pq.read_table("out.parquet"), "parquet")
check(pl.read_ipc("out.arrow", memory_map=False).to_arrow(), "polars arrow")
check(pl.read_parquet("out.parquet").to_arrow(), "polars parquet")
check(duckdb.sql("select * from 'out.parquet'").to_arrow_table(), "duckdb parquet")
check(duckdb.sql("select id, values::float[] as values, metadata from read_csv('out.csv', header=true)").to_arrow_table(), "csv")
rows = [json.loads(line) for line in open("out.ndjson")]
assert [row["id"] for row in rows] == ids and [row["metadata"] for row in rows] == metadata
assert np.array_equal(np.array([row["values"] for row in rows], dtype=np.float32), values)

assert np.array_equal(np.load("out.npy"), values)
assert np.array_equal(np.fromfile("out.fbin", dtype=np.float32, offset=8).reshape(300, 8), values)
assert list(np.fromfile("out.fbin", dtype=np.int32, count=2)) == [300, 8]
vecs = np.fromfile("out.fvecs", dtype=np.int32).reshape(300, 9)
assert set(vecs[:, 0]) == {8} and np.array_equal(vecs[:, 1:].copy().view(np.float32), values)
for name in ["out.ids.txt"]: assert open(name).read() == "".join(f"{id}\\n" for id in ids)
assert [json.loads(line) for line in open("out.metadata.ndjson")] == metadata
`;

const ANSWERS = `
import duckdb, json, h5py, numpy as np, polars as pl, pyarrow.feather as pf, pyarrow.parquet as pq
nearest = h5py.File("bench.hdf5")["neighbors"][:]
ivecs = np.fromfile("a.ivecs", dtype=np.int32).reshape(40, 11)
assert set(ivecs[:, 0]) == {10} and np.array_equal(ivecs[:, 1:], nearest)
table = pf.read_table("a.arrow")
assert np.array_equal(np.array(table["id"].to_pylist(), dtype=int).reshape(40, 10), nearest)
assert table["rank"].to_pylist() == list(range(1, 11)) * 40
frame = pl.read_csv("a.csv")
assert np.array_equal(frame["id"].cast(pl.Int64).to_numpy().reshape(40, 10), nearest)
assert np.array_equal(frame["score"].to_numpy().astype(np.float32), table["score"].to_numpy())
lines = [json.loads(line) for line in open("a.ndjson")]
assert [[int(match["id"]) for match in line["matches"]] for line in lines] == nearest.tolist()

values = h5py.File("bench.hdf5")["train"][:].astype(np.float64)
distances = ((values[:, None] - values[None]) ** 2).sum(-1)
np.fill_diagonal(distances, np.inf)
pairs = pf.read_table("joined.arrow")
assert pairs["id"].to_pylist() == [str(n) for n in range(300) for _ in range(3)]
assert pq.read_table("joined.parquet").to_pydict() == pairs.to_pydict()
assert pq.read_table("a.parquet").to_pydict() == table.to_pydict()
assert duckdb.sql("select count(*), max(rank) from 'joined.parquet'").fetchall() == [(900, 3)]
joined = np.array(pairs["match_id"].to_pylist(), dtype=int).reshape(300, 3)
assert np.array_equal(joined, np.argsort(distances, axis=1)[:, :3])
`;

describe('import and export of files', { skip }, () => {
  let url: string;
  let folder: Awaited<ReturnType<typeof makeFolder>>;

  before(async () => {
    url = await emptyServer();
    folder = await makeFolder();
    runPython(WRITE, folder.path);
  });
  after(async () => {
    await folder.remove();
  });

  function sagitta(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    const env = { SAGITTA_URL: url, XDG_STATE_HOME: folder.path };
    return run(args, { cwd: folder.path, env, ...options });
  }

  async function done(...args: readonly string[]): Promise<CommandResult> {
    const result = await sagitta(args);
    assert.equal(result.code, 0, `${args.join(' ')}: ${result.stderr}`);
    return result;
  }

  it('exports every format, which other programs read back unchanged', async () => {
    const fields = ['--id-field', 'key', '--values-field', 'embedding'];
    const { stdout } = await done('import', 'rows.parquet', '-c', 'rows', ...fields);
    assert.match(stdout, /^Imported 300 rows into rows in .* \(300 new, 0 replaced\)\.\n$/);
    const names = ['arrow', 'arrows', 'parquet', 'csv', 'ndjson', 'fvecs', 'fbin', 'npy'];
    for (const name of names) {
      // Needs --force, since fvecs, fbin and npy write the same side files.
      const result = await done('export', 'rows', '-o', `out.${name}`, '--force');
      assert.match(result.stdout, new RegExp(`^Wrote .*rows to out\\.${name} \\(\\d.*\\) in `));
    }
    runPython(READ, folder.path);
    assert.deepEqual(
      readdirSync(folder.path).filter((name) => name.includes('unfinished')),
      [],
    );
  });

  it('imports files of plain vectors with their ids and metadata', async () => {
    const side = ['--ids', 'out.ids.txt', '--metadata', 'out.metadata.ndjson'];
    await done('import', 'out.npy', '-c', 'again', ...side);
    const one = await done('export', 'rows');
    const other = await done('export', 'again');
    assert.equal(other.stdout, one.stdout);
    assert.equal(one.stdout.split('\n').length, 301);
    const refused = await sagitta(['import', 'out.npy', '-c', 'again', '--ids', 'wrong.ivecs']);
    assert.equal(refused.code, 1);
    writeFileSync(join(folder.path, 'few.txt'), 'a\nb\n');
    const few = await sagitta(['import', 'out.npy', '-c', 'again', '--ids', 'few.txt']);
    assert.match(few.stderr, /few\.txt: found 2 lines, but out\.npy has more rows/);
  });

  it('an export can be filtered, and does not overwrite files', async () => {
    const args = ['export', 'rows', '--filter', '{"n": {"$lt": 3}}', '--no-values'];
    const { stdout } = await done(...args);
    assert.deepEqual(
      stdout
        .trim()
        .split('\n')
        .map((line) => Object.keys(JSON.parse(line) as object)),
      [
        ['id', 'metadata'],
        ['id', 'metadata'],
        ['id', 'metadata'],
      ],
    );
    const before = readFileSync(join(folder.path, 'out.npy'));
    for (const [options, message] of [
      [['-o', 'out.npy'], /out\.npy already exists; use --force to overwrite it/],
      [['-o', 'out'], /unknown file extension/],
      [['--format', 'npy'], /--format npy cannot be written to stdout/],
      [['-o', 'x.npy', '--no-values'], /--format npy cannot be combined with --no-values/],
    ] as const) {
      const refused = await sagitta(['export', 'rows', ...options]);
      assert.equal(refused.code, 2, refused.stderr);
      assert.match(refused.stderr, message);
    }
    assert.deepEqual(readFileSync(join(folder.path, 'out.npy')), before);
    const missing = await sagitta(['export', 'none', '-o', 'none.arrow']);
    assert.equal(missing.code, 1);
    assert.equal(existsSync(join(folder.path, 'none.arrow')), false);
  });

  it('file queries and joins return the same matches as numpy', async () => {
    await done('import', 'bench.hdf5', '-c', 'bench', '--metric', 'euclidean', '--row-ids');
    for (const name of ['ivecs', 'arrow', 'csv', 'ndjson', 'parquet']) {
      const file = name === 'csv' ? 'queries.npy' : 'bench.hdf5';
      await done('query', 'bench', '--file', file, '-k', '10', '-o', `a.${name}`);
    }
    const { stdout } = await done('join', 'bench', '-k', '3', '-o', 'joined.arrow', '--json');
    assert.equal((JSON.parse(stdout) as { with: string }).with, 'bench');
    const { stderr } = await done('join', 'bench', '-k', '3', '-o', 'joined.parquet');
    assert.match(stderr, /^bench: 100 % {2}300 rows {2}[\d,]+ rows?\/s\n$/m);
    runPython(ANSWERS, folder.path);
    const judged = ['query', 'bench', '--file', 'bench.hdf5', '--recall'];
    assert.match(
      (await done(...judged, 'bench.hdf5')).stdout,
      /^recall@10: 1\.0000 \(40 queries\)\n$/,
    );
    const wrong = await done(...judged, 'wrong.ivecs', '--json');
    assert.deepEqual(JSON.parse(wrong.stdout), { recall: 0.9, k: 10, queries: 40 });
  });

  it('rejects invalid queries and option combinations', async () => {
    for (const [args, code, message] of [
      [
        ['--file', 'rows.parquet', '--values-field', 'v'],
        2,
        /no column "v", which --values-field names \(columns: key, /,
      ],
      [['--file', 'none.npy'], 1, /file not found: none\.npy/],
      [['--file', 'queries.npy', '--id', 'k1'], 2, /--id cannot be combined with --file/],
      [['--id', 'k1', '-o', 'x.csv'], 2, /--output requires --file/],
      [
        ['--file', 'bench.hdf5', '-o', 'x.ivecs'],
        1,
        /ivecs stores integer ids.*found the id "k\d+"/,
      ],
    ] as const) {
      const refused = await sagitta(['query', 'rows', ...args]);
      assert.equal(refused.code, code, refused.stderr);
      assert.match(refused.stderr, message);
    }
    assert.equal(existsSync(join(folder.path, 'x.ivecs')), false);
  });

  it('bench measures a running server', async () => {
    const args = ['bench', '-c', 'bench', '--seconds', '1', '--clients', '2', '--json'];
    const result = JSON.parse((await done(...args)).stdout) as Record<string, number>;
    assert.ok(result.queries! > 1 && result.p50_ms! > 0 && result.p99_ms! >= result.p50_ms!);
    assert.equal(result.dimension, 8);
  });
});
