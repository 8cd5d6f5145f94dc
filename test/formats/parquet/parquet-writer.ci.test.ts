// Parquet files as other tools read them. SAGITTA_TEST_PYTHON names an interpreter with pyarrow, polars and duckdb.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Bitmap, createBitmap, setBit } from '../../../src/common/bitmap.js';
import { ParquetWriter } from '../../../src/formats/parquet/parquet-writer.js';
import { columnOf } from '../../database/harness.js';
import { type Columns, fileOf } from './parquet-files.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasModules = spawnSync(python, ['-c', 'import pyarrow, polars, duckdb']).status === 0;
const skip = hasModules
  ? false
  : `${python} has no pyarrow, polars or duckdb; SAGITTA_TEST_PYTHON names one that has`;

/** Prints what each reader finds in each file, with values in hexadecimal, so that every bit counts. */
const SCRIPT = `
import json, struct, sys
import duckdb, polars, pyarrow.parquet
def hexed(rows):
    return [struct.pack("<%df" % len(row), *row).hex() for row in rows]
def plain(columns):
    return {name: hexed(rows) if name == "values" else list(rows) for name, rows in columns.items()}
found = []
for path in sys.argv[1:]:
    file = pyarrow.parquet.ParquetFile(path)
    table = file.read()
    table.validate(full=True)
    frame = polars.read_parquet(path)
    relation = duckdb.connect().sql("select * from '%s'" % path)
    names, rows = relation.columns, relation.fetchall()
    found.append({
        "groups": file.num_row_groups,
        "types": {field.name: str(field.type) for field in table.schema},
        "polars_types": {name: str(kind) for name, kind in frame.schema.items()},
        "duckdb_types": [str(kind) for kind in relation.types],
        "metadata": {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()},
        "pyarrow": plain({name: table[name].to_pylist() for name in table.column_names}),
        "polars": plain(frame.to_dict(as_series=False)),
        "duckdb": plain({name: [row[i] for row in rows] for i, name in enumerate(names)}),
    })
print(json.dumps(found))
`;

const LEAVES = `
import sys, duckdb, polars, pyarrow.parquet
path = sys.argv[1]
rows = range(21)
values = {
    "int32": [row - 5 for row in rows],
    "int64": [row * 2**50 for row in rows],
    "float32": [row / 4 for row in rows],
    "float64": [row / 3 for row in rows],
    "boolean": [row % 2 == 0 for row in rows],
    "utf8": [f"t{row}" if row % 3 != 1 else "" for row in rows],
}
expected = {}
for name, column in values.items():
    expected[name] = column * 3
    expected[name + "?"] = [value if row % 3 != 1 else None for row, value in enumerate(column)] * 3
table = pyarrow.parquet.read_table(path)
table.validate(full=True)
assert table.to_pydict() == expected, table.to_pydict()
assert polars.read_parquet(path).to_dict(as_series=False) == expected
relation = duckdb.sql(f"select * from '{path}'")
found = relation.fetchall()
assert {name: [row[at] for row in found] for at, name in enumerate(relation.columns)} == expected
`;

interface Found {
  readonly groups: number;
  readonly types: Record<string, string>;
  readonly polars_types: Record<string, string>;
  readonly duckdb_types: readonly string[];
  readonly metadata: Record<string, string>;
  readonly pyarrow: Columns;
  readonly polars: Columns;
  readonly duckdb: Columns;
}

describe('a Parquet file', () => {
  it('opens in pyarrow, Polars and DuckDB with every value unchanged', { skip }, () => {
    const long = 'x'.repeat(300);
    const texts = ['', 'ä', long, '{"a": [1,2 ]}', 'a', '☃', '"', '\\n'];
    const wide = Array.from({ length: 40 }, (_, i) => `row ${i}`);
    const files = [
      fileOf({ dimension: 3, groups: [[texts, ['one']], [wide]] }),
      fileOf({ dimension: 1, groups: [[texts]] }),
      fileOf({ dimension: 200, groups: Array.from({ length: 20 }, () => [wide]) }),
      fileOf({ dimension: 2, groups: [] }),
      fileOf({ dimension: 2, groups: [[texts]], isPlain: true }),
      fileOf({ dimension: null, groups: [[texts], [wide]] }),
    ];
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-parquet-'));
    try {
      const paths = files.map(({ bytes }, i) => {
        const path = join(folder, `${i}.parquet`);
        writeFileSync(path, bytes);
        return path;
      });
      const run = spawnSync(python, ['-c', SCRIPT, ...paths], {
        encoding: 'utf8',
        maxBuffer: 2 ** 26,
      });
      assert.equal(run.status, 0, run.stderr);
      const found = JSON.parse(run.stdout) as Found[];
      for (const [i, { columns }] of files.entries()) {
        for (const reader of ['pyarrow', 'polars', 'duckdb'] as const) {
          assert.deepEqual(found[i]![reader], columns, `file ${i} by ${reader}`);
        }
      }
      assert.deepEqual(
        found.map(({ groups }) => groups),
        [2, 1, 20, 0, 1, 2],
      );
      const [first, , , , plain] = found;
      assert.match(first!.types.values!, /^fixed_size_list<.*: float not null>\[3\]$/);
      assert.equal(first!.types.id, 'string');
      assert.match(first!.polars_types.values!, /^Array\(Float32, shape=\(3,\)\)$/);
      assert.deepEqual(first!.duckdb_types, ['VARCHAR', 'FLOAT[]', 'VARCHAR']);
      assert.equal(first!.metadata.sequence, '7');
      assert.match(plain!.types.values!, /^list<.*: float not null>$/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('has columns of every type with and without nulls', { skip }, () => {
    const rowCount = 21;
    const rows = Array.from({ length: rowCount }, (_, row) => row);
    const isPresent = (row: number) => row % 3 !== 1;
    const presence = bitsOf(rows.map(isPresent));
    const leaves = {
      int32: Int32Array.from(rows, (row) => row - 5),
      int64: BigInt64Array.from(rows, (row) => BigInt(row) * 2n ** 50n),
      float32: Float32Array.from(rows, (row) => row / 4),
      float64: Float64Array.from(rows, (row) => row / 3),
      boolean: bitsOf(rows.map((row) => row % 2 === 0)),
      utf8: columnOf(rows.map((row) => (isPresent(row) ? `t${row}` : ''))),
    };
    const kinds = Object.keys(leaves) as (keyof typeof leaves)[];
    const writer = new ParquetWriter({
      fields: kinds.flatMap((kind) => [
        { name: kind, type: kind },
        { name: `${kind}?`, type: kind, isNullable: true },
      ]),
      metadata: new Map(),
      createdBy: 'a test',
    });
    const columns = kinds.flatMap((kind) => [
      { leaf: leaves[kind], presence: null },
      { leaf: leaves[kind], presence },
    ]);
    const group = [{ count: rowCount, columns }];
    const bytes = [
      writer.begin(),
      ...writer.rowGroup(group),
      ...writer.rowGroup([...group, ...group]),
    ];
    const folder = mkdtempSync(join(tmpdir(), 'sagitta-parquet-'));
    try {
      const path = join(folder, 'leaves.parquet');
      writeFileSync(path, Buffer.concat([...bytes, writer.end()]));
      const run = spawnSync(python, ['-c', LEAVES, path], { encoding: 'utf8' });
      assert.equal(run.status, 0, run.stderr);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function bitsOf(bits: readonly boolean[]): Bitmap {
  const bitmap = createBitmap(bits.length);
  for (const [row, isSet] of bits.entries()) if (isSet) setBit(bitmap, row);
  return bitmap;
}
