// Opens a segment file with pyarrow. SAGITTA_TEST_PYTHON names an interpreter with pyarrow installed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { Segment } from '../../src/segment/segment.js';
import { activeOptions, batchOf, encodeSegment, rowsOf } from './sample.js';

const python = process.env.SAGITTA_TEST_PYTHON ?? 'python3';
const hasArrow = spawnSync(python, ['-c', 'import pyarrow']).status === 0;
const skip = hasArrow
  ? false
  : `${python} lacks pyarrow; set SAGITTA_TEST_PYTHON to one that has it`;

/** Prints columns as JSON; `validate` checks every offset, code and bitmap. */
const SCRIPT = `
import json, sys
import pyarrow
table = pyarrow.ipc.open_file(pyarrow.memory_map(sys.argv[1])).read_all()
table.validate(full=True)
print(json.dumps({
  "types": {field.name: str(field.type) for field in table.schema},
  "columns": {name: table[name].to_pylist() for name in table.column_names},
  "metadata": {key.decode(): value.decode() for key, value in table.schema.metadata.items()},
}))
`;

it('a segment file opens in pyarrow with ids, values, metadata and typed columns', { skip }, () => {
  const documents = [
    { category: 'shoes', price: 1.5, in_stock: true, tags: ['a', 'b'], size: { eu: 42 } },
    { category: 'hats', price: 2, in_stock: false, tags: [], mixed: 'x' },
    { category: 'shoes', price: null, flags: [true, null], mixed: 7, numbers: [1, 2.5] },
    {},
  ];
  const segment = Segment.createActive(activeOptions({}));
  segment.append(batchOf(rowsOf(documents, 'ä')), 0, 3, 2 ** 50);
  segment.append(batchOf(rowsOf(documents, 'ä')), 3, 1, 2 ** 50 + 1);
  segment.seal();
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-segment-'));
  try {
    const file = join(folder, 'segment.arrow');
    writeFileSync(file, Buffer.from(encodeSegment(segment.toData()).bytes));
    const run = spawnSync(python, ['-c', SCRIPT, file], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
    const { types, columns, metadata } = JSON.parse(run.stdout) as {
      types: Record<string, string>;
      columns: Record<string, unknown[]>;
      metadata: Record<string, string>;
    };
    assert.deepEqual(columns.id, ['ä0', 'ä1', 'ä2', 'ä3']);
    assert.deepEqual(columns.values, [
      [0, 0.5],
      [1, 1.5],
      [2, 2.5],
      [3, 3.5],
    ]);
    assert.deepEqual(
      columns.metadata,
      documents.map((document) => JSON.stringify(document)),
    );
    const s = 2 ** 50;
    assert.deepEqual(columns.inserted_sequence, [s, s, s, s + 1]);
    assert.deepEqual(columns['metadata.category'], ['shoes', 'hats', 'shoes', null]);
    assert.deepEqual(columns['metadata.price'], [1.5, 2, null, null]);
    assert.deepEqual(columns['metadata.in_stock'], [true, false, null, null]);
    assert.deepEqual(columns['metadata.tags'], [['a', 'b'], [], null, null]);
    assert.deepEqual(columns['metadata.size.eu'], [42, null, null, null]);
    assert.deepEqual(columns['metadata.flags'], [null, null, [true, null], null]);
    assert.deepEqual(columns['metadata.numbers'], [null, null, [1, 2.5], null]);
    assert.deepEqual(columns['metadata.mixed:strings'], [null, 'x', null, null]);
    assert.deepEqual(columns['metadata.mixed:numbers'], [null, null, 7, null]);
    assert.deepEqual(columns['kind.price'], [4, 4, 1, 0]);
    assert.deepEqual(columns['kind.size'], [7, 0, 0, 0]);
    assert.deepEqual(columns['kind.flags[]'], [null, null, [3, 1], null]);
    assert.match(types.values!, /fixed_size_list<item: float.*\[2\]/);
    assert.equal(types.inserted_sequence, 'int64');
    assert.equal(types['metadata.price'], 'double');
    assert.match(types['metadata.category']!, /dictionary<values=string, indices=int32/);
    assert.deepEqual(JSON.parse(metadata['sagitta.vectors']!), [
      { name: '', kind: 'dense', dimension: 2 },
    ]);
    assert.deepEqual(JSON.parse(metadata['sagitta.codes']!), [null]);
    assert.equal(metadata['sagitta.row_count'], '4');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
