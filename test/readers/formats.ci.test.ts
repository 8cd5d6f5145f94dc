// Readers with files written by other programs: every format yields the same five rows from any start row. Also tests
// the error messages for damaged files.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { ReaderOptions } from '../../src/readers/reader-options.js';
import { runPython, skipWithout } from './python-files.js';
import { folderOfTests, vectorsOf } from './read-files.js';

const { batchesOf, path, write } = folderOfTests();

const skip = skipWithout('pyarrow', 'polars', 'duckdb', 'numpy', 'h5py');

const SCRIPT = `
import datetime, decimal, json
import duckdb, h5py, numpy as np, polars as pl, pyarrow as pa, pyarrow.csv as pc
import pyarrow.feather as pf, pyarrow.parquet as pq

values = np.array([[0.5, 1, -2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 127]], dtype=np.float32)
ids = [f"r{n}é" for n in range(5)]
small = values.astype(np.int8)

for name, dtype in {"f2": "<f2", "f4": "<f4", "f8": "<f8", "big": ">f4", "be8": ">f8"}.items():
    np.save(f"{name}.npy", values.astype(dtype))
for name in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]:
    np.save(f"{name}.npy", np.abs(values).astype(name))
with open("v2.npy", "wb") as f: np.lib.format.write_array(f, values, version=(2, 0))
with open("v3.npy", "wb") as f: np.lib.format.write_array(f, values, version=(3, 0))
np.save("fortran.npy", np.asfortranarray(values))
np.save("fortran16.npy", np.asfortranarray(values.astype(">f2")))
np.savez("one.npz", values)
np.savez("two.npz", vectors=values, fortran=np.asfortranarray(values), text=np.array(["a"]))
np.savez_compressed("deflated.npz", vectors=values.astype(np.float64), fortran=np.asfortranarray(values))
np.save("flat.npy", values[0])
np.save("complex.npy", values.astype(np.complex64))
np.save("nan.npy", np.where(values == 7, np.nan, values))
np.save("huge.npy", np.where(values == 7, 1e300, values.astype(np.float64)))

def vecs(name, rows, dtype):
    with open(name, "wb") as f:
        for row in rows:
            f.write(np.int32(len(row)).tobytes() + row.astype(dtype).tobytes())
vecs("a.fvecs", values, np.float32)
vecs("a.bvecs", np.abs(values), np.uint8)
vecs("a.ivecs", np.abs(values), np.int32)
vecs("ragged.fvecs", [values[0], values[1], values[2][:2]], np.float32)
for name, dtype in {"a.fbin": np.float32, "a.u8bin": np.uint8, "a.i8bin": np.int8}.items():
    rows = values if dtype == np.float32 else np.abs(values)
    with open(name, "wb") as f:
        f.write(np.array(rows.shape, dtype=np.int32).tobytes() + rows.astype(dtype).tobytes())

with h5py.File("a.hdf5", "w") as f:
    f["train"] = values
    f["test"] = values[:2].astype(np.float64)
    f["neighbors"] = np.array([[1, 2], [0, 2]], dtype=np.int64)
    f["flat"] = values[0]
    f["half"] = values.astype("<f2")
    f["half-big"] = values.astype(">f2")
    f.create_dataset("half-chunks", data=values.astype("f2"), chunks=(2, 2), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("lzf", data=values, chunks=(2, 2), compression="lzf", shuffle=True)
    f.create_group("group").create_group("deep")["vecs"] = values
    f.attrs["distance"] = "euclidean"

table = pa.table({
    "id": ids,
    "values": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 3),
    "year": pa.array([2020, None, 2**60, 3, 4], pa.int64()),
    "at": pa.array([datetime.datetime(2026, 11, 21, 8, tzinfo=datetime.timezone.utc)] * 5, pa.timestamp("us", "UTC")),
    "price": pa.array([decimal.Decimal("1.10")] * 5),
    "place": pa.array([{"lat": 1.5, "tags": ["a", None]}] * 5),
    "kind": pa.array(["x", "y", "x", None, "x"]).dictionary_encode(),
})
halves = table.set_column(1, "values", pa.array(list(values.astype(np.float16)), pa.list_(pa.float16())))
doubles = table.set_column(1, "values", pa.array(values.astype(np.float64).tolist(), pa.large_list(pa.float64())))
for codec in ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]:
    pq.write_table(table, f"{codec}.parquet", compression=codec, row_group_size=2)
pq.write_table(halves, "halves.parquet")
pq.write_table(doubles, "doubles.parquet", data_page_version="2.0", use_dictionary=False)
pf.write_feather(table, "plain.arrow", compression="uncompressed")
for codec in ["lz4", "zstd"]: pf.write_feather(doubles, f"{codec}.arrow", compression=codec, chunksize=2)
with pa.ipc.new_stream("plain.arrows", table.schema) as f: f.write_table(table, max_chunksize=2)

frame = pl.DataFrame({"id": ids, "values": pl.Series(values.tolist(), dtype=pl.List(pl.Float32)), "year": [2020, None, 2**60, 3, 4]})
frame.write_parquet("polars.parquet")
frame.with_columns(pl.col("values").cast(pl.Array(pl.Float32, 3))).write_parquet("polars-array.parquet", compression="lz4", row_group_size=2)
frame.write_ipc("polars.arrow", compression="zstd")
frame.write_ipc_stream("polars.arrows")
frame.with_columns(pl.col("values").cast(pl.List(pl.String)).list.join(" ")).write_csv("spaces.csv")

db = duckdb.connect()
db.register("t", table.select(["id", "values", "year"]))
for codec in ["snappy", "zstd", "gzip", "lz4_raw", "brotli"]:
    db.execute(f"copy (select id, values::float[3] as values, year from t) to 'duckdb-{codec}.parquet' (format parquet, compression {codec})")
db.execute("copy (select id, values::float[] as values, year from t) to 'duckdb.csv' (format csv)")
db.execute("copy (select id, values[1] as d0, values[2] as d1, values[3] as d2, year from t) to 'columns.tsv' (format csv, delimiter '\t')")
db.execute("copy (select ('00112233-4455-6677-8899-aabbccddee0' || n)::uuid as id, [n, 1]::float[2] as values, struct_pack(at := n, of := 'x') as place, ('00112233-4455-6677-8899-aabbccddee0' || n)::uuid as other, 'raw'::blob as raw from range(5) t(n)) to 'uuids.parquet' (format parquet)")
flat = pa.table({"id": ids, "values": [json.dumps(row) for row in values.tolist()], "metadata": [json.dumps({"n": n, "t": "a,b\\n"}) for n in range(5)]})
pc.write_csv(flat, "json.csv")

uuids = [f"00112233-4455-6677-8899-aabbccddee{n:02x}" for n in range(5)]
raw = pa.array([bytes.fromhex(text.replace("-", "")) for text in uuids], pa.binary(16))
pf.write_feather(pa.table({"id": pa.ExtensionArray.from_storage(pa.uuid(), raw), "values": values.tolist()}), "uuids.arrow")
`;

const VALUES = [
  [0.5, 1, -2],
  [3, 4, 5],
  [6, 7, 8],
  [9, 10, 11],
  [12, 13, 127],
];
const WHOLE = [[0, 1, 2], ...VALUES.slice(1)];
const IDS = ['r0é', 'r1é', 'r2é', 'r3é', 'r4é'];
const YEARS = ['2020', 'null', '1152921504606846976', '3', '4'];
const TABLE_REST =
  '"at":"2026-11-21T08:00:00.000000Z","price":1.10,"place":{"lat":1.5,"tags":["a",null]},"kind":';
const KINDS = ['"x"', '"y"', '"x"', 'null', '"x"'];
const TABLE_METADATA = YEARS.map((year, at) => `{"year":${year},${TABLE_REST}${KINDS[at]}}`);
const YEAR_METADATA = YEARS.map((year) => `{"year":${year}}`);

describe('files written by other programs', { skip }, () => {
  before(() => {
    runPython(SCRIPT, path());
  });

  type Bare = readonly [
    name: string,
    rows: readonly (readonly number[])[],
    options?: Partial<ReaderOptions>,
  ];
  const bare: readonly Bare[] = [
    ...['f2', 'f4', 'f8', 'big', 'be8', 'v2', 'v3'].map((name): Bare => [`${name}.npy`, VALUES]),
    ...['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8'].map((name): Bare => [`${name}.npy`, WHOLE]),
    ['fortran.npy', VALUES],
    ['fortran16.npy', VALUES],
    ['one.npz', VALUES],
    ...['two.npz', 'deflated.npz'].map((name): Bare => [name, VALUES, { dataset: 'vectors' }]),
    ['two.npz', VALUES, { dataset: 'fortran' }],
    ['a.fvecs', VALUES],
    ['a.bvecs', WHOLE],
    ['a.ivecs', WHOLE],
    ['a.fbin', VALUES],
    ['a.u8bin', WHOLE],
    ['a.i8bin', WHOLE],
    ['a.hdf5', VALUES],
    ['a.hdf5', VALUES.slice(0, 2), { dataset: 'test' }],
    ['a.hdf5', VALUES, { dataset: 'group/deep/vecs' }],
    ['a.hdf5', VALUES, { dataset: '/group/deep/vecs' }],
    ['a.hdf5', VALUES, { dataset: 'half' }],
    ['a.hdf5', VALUES, { dataset: 'half-big' }],
    ['a.hdf5', VALUES, { dataset: 'half-chunks' }],
    [
      'a.hdf5',
      [
        [1, 2],
        [0, 2],
      ],
      { dataset: 'neighbors' },
    ],
  ];
  for (const [name, rows, options] of bare) {
    it(`${name}${options?.dataset === undefined ? '' : ' '}${options?.dataset ?? ''} gives its vectors, from any row on`, async () => {
      for (let start = 0; start <= rows.length; start++) {
        const batches = await batchesOf(name, options, start);
        assert.deepEqual(vectorsOf(batches), rows.slice(start));
        for (const { rowCount } of batches) assert.ok(rowCount <= 2);
      }
    });
  }

  type Table = readonly [
    name: string,
    metadata: readonly string[],
    options?: Partial<ReaderOptions>,
  ];
  const tables: readonly Table[] = [
    ...['none', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4', 'halves', 'doubles'].map(
      (name): Table => [`${name}.parquet`, TABLE_METADATA],
    ),
    ...['plain.arrow', 'lz4.arrow', 'zstd.arrow', 'plain.arrows'].map(
      (name): Table => [name, TABLE_METADATA],
    ),
    ...[
      'polars.parquet',
      'polars-array.parquet',
      'polars.arrow',
      'polars.arrows',
      'spaces.csv',
    ].map((name): Table => [name, YEAR_METADATA]),
    ...['snappy', 'zstd', 'gzip', 'lz4_raw', 'brotli'].map(
      (codec): Table => [`duckdb-${codec}.parquet`, YEAR_METADATA],
    ),
    ['duckdb.csv', YEAR_METADATA],
    ['columns.tsv', YEAR_METADATA, { vectorColumns: ['d0', 'd1', 'd2'] }],
    ['plain.arrow', YEAR_METADATA, { fields: ['year'] }],
    ['zstd.parquet', YEAR_METADATA, { fields: ['year'] }],
    ['json.csv', [0, 1, 2, 3, 4].map((n) => `{"n": ${n}, "t": "a,b\\n"}`)],
  ];
  for (const [name, metadata, options] of tables) {
    const chosen = options?.fields === undefined ? '' : ' with chosen columns';
    it(`${name}${chosen} gives ids, vectors and metadata, from any row on`, async () => {
      for (const start of [0, 1, 4, 5]) {
        const batches = await batchesOf(name, options, start);
        assert.deepEqual(vectorsOf(batches), VALUES.slice(start));
        assert.deepEqual(
          batches.flatMap(({ ids }) => ids),
          IDS.slice(start),
        );
        assert.deepEqual(
          batches.flatMap((batch) => batch.metadata),
          metadata.slice(start),
        );
      }
    });
  }

  it('UUIDs become ids in their text form', async () => {
    const uuids = [0, 1, 2, 3, 4].map((n) => `00112233-4455-6677-8899-aabbccddee0${n}`);
    const batches = await batchesOf('uuids.parquet', { exclude: ['raw', 'place'] });
    for (const found of [await batchesOf('uuids.arrow'), batches]) {
      assert.deepEqual(
        found.flatMap((batch) => batch.ids),
        uuids,
      );
    }
    assert.deepEqual(
      batches.flatMap((batch) => batch.metadata),
      uuids.map((uuid) => `{"other":"${uuid}"}`),
    );
  });

  it('formats without random access can also be read from gzip', async () => {
    for (const name of ['f4.npy', 'a.fvecs', 'a.fbin', 'duckdb.csv', 'plain.arrows']) {
      write(`${name}.gz`, gzipSync(readFileSync(path(name))));
      assert.deepEqual(vectorsOf(await batchesOf(`${name}.gz`)), VALUES);
      assert.deepEqual(vectorsOf(await batchesOf(`${name}.gz`, {}, 3)), VALUES.slice(3));
    }
    write('a.parquet.gz', gzipSync(readFileSync(path('zstd.parquet'))));
    await assert.rejects(
      batchesOf('a.parquet.gz'),
      /Parquet cannot be read from gzip.*pass an uncompressed file/,
    );
  });

  it('locations count rows from 1 through the whole file', async () => {
    for (const [name, place] of [
      ['f4.npy', 'row 4'],
      ['a.fvecs', 'row 4'],
      ['a.hdf5', 'row 4 of train'],
      ['zstd.parquet', 'row 4'],
      ['plain.arrows', 'row 4'],
    ] as const) {
      const [batch] = await batchesOf(name, {}, 3);
      assert.equal(batch!.location(0), `${path(name)}, ${place}`);
    }
    const [batch] = await batchesOf('duckdb.csv', {}, 3);
    assert.equal(batch!.location(0), `${path('duckdb.csv')}:5`);
  });

  const torn = (name: string, byteCount: number) => readFileSync(path(name)).subarray(0, byteCount);
  const broken: readonly [string, () => string, RegExp, Partial<ReaderOptions>?][] = [
    [
      'a torn array',
      () => write('torn.npy', torn('f4.npy', 150)),
      /found 150 bytes, expected 188 for 5 vectors of 3 float32/,
    ],
    [
      'an array in Fortran order in gzip',
      () => write('fortran.npy.gz', gzipSync(readFileSync(path('fortran.npy')))),
      /Fortran order cannot be read from compressed bytes.*numpy\.ascontiguousarray/,
    ],
    [
      'a deflated array in Fortran order',
      () => 'deflated.npz',
      /Fortran order cannot be read from compressed/,
      { dataset: 'fortran' },
    ],
    [
      'a torn array in Fortran order',
      () => write('torn-fortran.npy', torn('fortran.npy', 150)),
      /torn-fortran\.npy: found 150 bytes, expected 188 for 5 vectors of 3 float32/,
    ],
    [
      'an archive of several arrays',
      () => 'two.npz',
      /found 3 arrays \(arrays: vectors, fortran, text\); choose one with --dataset/,
    ],
    [
      'an array that is not in the archive',
      () => 'two.npz',
      /no array "x", which --dataset names \(arrays: vectors, fortran, text\)/,
      { dataset: 'x' },
    ],
    [
      'a torn archive',
      () => write('torn.npz', torn('two.npz', 600)),
      /torn\.npz: not a valid zip archive: it has no end record/,
    ],
    ['an array of texts', () => 'two.npz', /unsupported type '<U1'/, { dataset: 'text' }],
    [
      'a column of bytes',
      () => 'uuids.parquet',
      /column "raw" cannot be metadata.*Name it with --exclude/,
    ],
    [
      'a column to exclude that is not there',
      () => 'uuids.parquet',
      /no column "x", which --exclude names \(columns: id, values/,
      { exclude: ['x'] },
    ],
    [
      'an array of one dimension',
      () => 'flat.npy',
      /found the shape \(3\), expected \(vectors, dimension\)/,
    ],
    [
      'an array of complex numbers',
      () => 'complex.npy',
      /unsupported type '<c8', expected one of b1, f2/,
    ],
    ['an array with NaN', () => 'nan.npy', /row 3: values\[1\] is NaN, expected a finite/],
    [
      'an array beyond float32',
      () => 'huge.npy',
      /row 3: values\[1\] is Infinity, expected a finite float32/,
    ],
    [
      'no array',
      () => write('none.npy', 'hello'),
      /none\.npy: not NumPy array, judging by its first bytes/,
    ],
    [
      'a dimension that changes',
      () => 'ragged.fvecs',
      /row 3: found dimension 2, expected 3 as in row 1/,
    ],
    [
      'torn fvecs',
      () => write('torn.fvecs', torn('a.fvecs', 40)),
      /row 3: the file ends within this vector, after 8 of 16 bytes/,
    ],
    [
      'torn fbin',
      () => write('torn.fbin', torn('a.fbin', 40)),
      /found 40 bytes, expected 68 for 5 vectors of 3 float32/,
    ],
    [
      'torn fbin in gzip',
      () => write('torn.fbin.gz', gzipSync(torn('a.fbin', 40))),
      /row 3: the file ends within this vector, after 8 of 12 bytes/,
    ],
    [
      'text as fvecs',
      () => write('text.fvecs', 'hello world'),
      /the first vector has dimension 1819043176/,
    ],
    ['no such dataset', () => 'a.hdf5', /no dataset base \(datasets: .*train/, { dataset: 'base' }],
    [
      'no such dataset in a group',
      () => 'a.hdf5',
      /no dataset group\/vecs \(datasets: .*group\/deep\/vecs/,
      { dataset: 'group/vecs' },
    ],
    [
      'a dataset of one dimension',
      () => 'a.hdf5',
      /dataset flat has the shape \(3\)/,
      { dataset: 'flat' },
    ],
    [
      'a filter that is a plugin',
      () => 'a.hdf5',
      /dataset lzf has the filter lzf \(32000\), which is not supported; convert .* h5repack -f GZIP=1/,
      { dataset: 'lzf' },
    ],
    ['a group', () => 'a.hdf5', /group is a group, expected a dataset/, { dataset: 'group' }],
    ['a torn HDF5 file', () => write('torn.hdf5', torn('a.hdf5', 300)), /torn\.hdf5: invalid HDF5/],
    [
      'a torn Parquet file',
      () => write('torn.parquet', torn('zstd.parquet', 900)),
      /torn\.parquet: invalid Parquet/,
    ],
    [
      'a torn Arrow file',
      () => write('torn.arrow', torn('plain.arrow', 900)),
      /torn\.arrow: invalid Arrow IPC: expected an Arrow file, which begins and ends with ARROW1/,
    ],
    [
      'no column of vectors',
      () => 'plain.arrow',
      /no column "v", which --values-field names \(columns: id, values/,
      { valuesField: 'v' },
    ],
    [
      'a column that is not there',
      () => 'plain.arrow',
      /no column "x", which --fields names \(columns: id, values/,
      { fields: ['x'] },
    ],
  ];
  for (const [what, make, message, options] of broken) {
    it(`${what} is reported with the file`, async () => {
      const name = make();
      await assert.rejects(batchesOf(name, options), (error: Error) => {
        assert.equal(error.name, 'ReadError', error.stack);
        assert.ok(error.message.startsWith(path(name)), error.message);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});
