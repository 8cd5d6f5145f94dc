import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ParquetWriter } from '../../../src/formats/parquet/parquet-writer.js';
import { columnOf } from '../../../test/database/harness.js';
import { encodeBatch } from '../src/views/import/encode-batch.js';
import { CHUNK_BYTES } from '../src/views/import/read/file-bytes.js';
import { openRows } from '../src/views/import/read/open-rows.js';
import type { RowSource, SourceRow } from '../src/views/import/read/row-source.js';

function fileOf(name: string, ...parts: readonly (string | Uint8Array<ArrayBuffer>)[]) {
  return new File([...parts], name);
}

async function rowsOf(source: RowSource, startRow = 0): Promise<SourceRow[]> {
  const rows: SourceRow[] = [];
  for await (const block of source.rows(startRow)) rows.push(...block);
  return rows;
}

async function cellsOf(file: File, startRow = 0): Promise<unknown[]> {
  const rows = await rowsOf(await openRows(file), startRow);
  return rows.map((row) => (row.kind === 'row' ? row.cells : row));
}

describe('NDJSON', () => {
  test('lines are rows; blank lines are not', async () => {
    const file = fileOf('a.jsonl', '{"id":"a","values":[1,2]}\n\n  \r\n{"id":"b"}');
    assert.deepEqual(await cellsOf(file), [{ id: 'a', values: [1, 2] }, { id: 'b' }]);
  });

  test('integers beyond 2^53 have all their digits, up to the bytes that are sent', async () => {
    const file = fileOf('a.jsonl', '{"id":1768907725507217523,"posts":[9007199254740993,7]}');
    const [cells] = await cellsOf(file);
    const posts = [9007199254740993n, 7];
    assert.deepEqual(cells, { id: 1768907725507217523n, posts });
    const bytes = await encodeBatch([{ id: 'a', values: [1, 2], metadata: { posts } }], 2);
    assert.match(new TextDecoder().decode(bytes), /\{"posts":\[9007199254740993,7\]\}/);
  });

  test('a broken line is one bad row, and rows can be skipped without parsing them', async () => {
    const file = fileOf('a.jsonl', '{"id":1}\n{"id":\n[1]\n{"id":4}\n');
    const rows = await rowsOf(await openRows(file));
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['row', 'broken', 'broken', 'row'],
    );
    assert.deepEqual(await cellsOf(file, 3), [{ id: 4 }]);
  });

  test('rows may be cut anywhere between two reads', async () => {
    const line = `{"text":"${'é'.repeat(1_000)}"}\n`;
    const count = Math.ceil((1.5 * CHUNK_BYTES) / new TextEncoder().encode(line).byteLength);
    const source = await openRows(fileOf('a.jsonl', line.repeat(count)));
    const rows = await rowsOf(source);
    assert.equal(rows.length, count);
    assert.ok(rows.every(({ kind }) => kind === 'row'));
    assert.equal(source.share(), 1);
  });

  test('bytes that are not UTF-8 are an error, not replacement characters', async () => {
    const file = fileOf('a.jsonl', '{"a":"', Uint8Array.of(0xff), '"}');
    await assert.rejects(cellsOf(file), TypeError);
  });
});

describe('a JSON array', () => {
  test('elements are rows, whatever their strings contain', async () => {
    const elements = [{ a: ']},{["\\"' }, { b: { c: [[1, 2], { d: ',' }] } }, {}];
    assert.deepEqual(await cellsOf(fileOf('a.json', JSON.stringify(elements, null, 2))), elements);
  });

  test('an empty array has no rows, and a cut one is an error', async () => {
    assert.deepEqual(await cellsOf(fileOf('a.json', ' [ ] ')), []);
    await assert.rejects(cellsOf(fileOf('a.json', '[{"a":1},{"b"')), /cut off/);
  });

  test('elements may be cut anywhere between two reads', async () => {
    const element = JSON.stringify({ text: '"\\,]'.repeat(300) });
    const count = Math.ceil((1.5 * CHUNK_BYTES) / element.length);
    const text = `[${Array.from({ length: count }, () => element).join(',')}]`;
    assert.equal((await cellsOf(fileOf('a.json', text))).length, count);
  });
});

describe('CSV', () => {
  test('quotes hold delimiters, quotes and line ends', async () => {
    const file = fileOf('a.csv', 'id,"a ""b"", c"\r\n1,"x\n""y"""\r\n2,\r\n');
    assert.deepEqual(await cellsOf(file), [
      { id: '1', 'a "b", c': 'x\n"y"' },
      { id: '2', 'a "b", c': '' },
    ]);
  });

  test('quoted cells are known, since they are text even if they look like numbers', async () => {
    const [row] = await rowsOf(await openRows(fileOf('a.csv', 'a,b\n"1",1\n')));
    assert.deepEqual(row?.kind === 'row' && [...row.quoted!], ['a']);
  });

  test('the delimiter is what the header has most of', async () => {
    assert.deepEqual(await cellsOf(fileOf('a.csv', 'a;b,c;d\n1;2;3\n')), [
      { a: '1', 'b,c': '2', d: '3' },
    ]);
    assert.deepEqual(await cellsOf(fileOf('a.tsv', 'a\tb\n1\t2')), [{ a: '1', b: '2' }]);
  });

  test('a record with too few cells is one bad row', async () => {
    const rows = await rowsOf(await openRows(fileOf('a.csv', 'a,b\n1\n3,4\n')));
    assert.deepEqual(rows[0], {
      kind: 'broken',
      problem: 'found 1 cells, expected 2 as in the header',
      text: '1',
    });
    assert.equal(rows[1]!.kind, 'row');
  });

  test('a byte order mark is not a part of the first name, and names are unique', async () => {
    assert.deepEqual(await cellsOf(fileOf('a.csv', '\ufeffa,b\n1,2')), [{ a: '1', b: '2' }]);
    await assert.rejects(openRows(fileOf('a.csv', 'a,a\n1,2')), /names the column a twice/);
  });

  test('records may be cut anywhere between two reads, and an import may start later', async () => {
    const record = `7,"${'x""\n'.repeat(500)}"\n`;
    const count = Math.ceil((1.5 * CHUNK_BYTES) / record.length);
    const file = fileOf('a.csv', 'a,b\n', record.repeat(count));
    const rows = await rowsOf(await openRows(file));
    assert.equal(rows.length, count);
    assert.ok(rows.every((row) => row.kind === 'row' && row.cells.a === '7'));
    assert.equal((await cellsOf(file, count - 2)).length, 2);
  });
});

describe('npy', () => {
  function npy(descr: string, shape: string, data: Uint8Array<ArrayBuffer>, order = 'False') {
    const header = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': (${shape}), }`;
    const padded = `${header.padEnd(117)}\n`;
    const head = new Uint8Array(10 + padded.length);
    head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length, 0]);
    head.set(new TextEncoder().encode(padded), 10);
    return fileOf('a.npy', head, data);
  }

  test('rows are vectors of float32', async () => {
    const data = new Uint8Array(Float64Array.of(1, 2.5, -3, 4).buffer);
    const file = npy('<f8', '2, 2', data);
    assert.equal((await openRows(file)).rowCount, 2);
    assert.deepEqual(await cellsOf(file), [
      { values: Float32Array.of(1, 2.5) },
      { values: Float32Array.of(-3, 4) },
    ]);
    assert.deepEqual(await cellsOf(file, 1), [{ values: Float32Array.of(-3, 4) }]);
  });

  test('half precision includes subnormal numbers', async () => {
    const data = new Uint8Array(Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff).buffer);
    assert.deepEqual(await cellsOf(npy('<f2', '1, 4', data)), [
      { values: Float32Array.of(1, -2, 2 ** -24, 65504) },
    ]);
  });

  test('other shapes, types and lengths are refused', async () => {
    const data = new Uint8Array(16);
    await assert.rejects(openRows(npy('<f4', '4,', data)), /two dimensions/);
    await assert.rejects(openRows(npy('<f4', '2, 2', data, 'True')), /C order/);
    await assert.rejects(openRows(npy('<c8', '2, 1', data)), /found an array of <c8/);
    await assert.rejects(openRows(npy('<f4', '2, 3', data)), /bytes, expected/);
  });
});

describe('Arrow', () => {
  test('a stream has its columns as cells', async () => {
    const rows = [
      { id: 'a', values: [1, 2], metadata: { x: 1 } },
      { id: 'b', values: [3, 4], metadata: {} },
    ];
    const file = fileOf('a.arrows', await encodeBatch(rows, 2));
    assert.deepEqual(await cellsOf(file), [
      { id: 'a', values: Float32Array.of(1, 2), metadata: '{"x":1}' },
      { id: 'b', values: Float32Array.of(3, 4), metadata: '{}' },
    ]);
    assert.equal((await cellsOf(file, 1)).length, 1);
  });

  test('a cut stream is an error', async () => {
    const bytes = await encodeBatch([{ id: 'a', values: [1, 2], metadata: {} }], 2);
    await assert.rejects(openRows(fileOf('a.arrows', bytes.slice(0, -9))), /cut off/);
  });
});

describe('Parquet', () => {
  /** One row group for each list of ids; row i of the file has the vector [i, 0.5]. */
  function parquet(groups: readonly (readonly string[])[]): File {
    const writer = new ParquetWriter({
      fields: [
        { name: 'id', type: 'utf8' },
        { name: 'values', type: { vectorOf: 2 } },
      ],
      metadata: new Map(),
      createdBy: 'a test',
    });
    const chunks = [writer.begin()];
    let row = 0;
    for (const ids of groups) {
      const values = Float32Array.from(ids.flatMap(() => [row++, 0.5]));
      const columns = [{ leaf: columnOf(ids) }, { vectors: values }];
      chunks.push(...writer.rowGroup([{ count: ids.length, columns }]));
    }
    chunks.push(writer.end());
    return fileOf('a.parquet', ...chunks.map((chunk) => new Uint8Array(chunk)));
  }

  test('rows are those of all row groups', async () => {
    const file = parquet([['a', 'b'], ['c']]);
    const source = await openRows(file);
    assert.equal(source.rowCount, 3);
    assert.deepEqual(source.columns, ['id', 'values']);
    assert.deepEqual(await cellsOf(file), [
      { id: 'a', values: [0, 0.5] },
      { id: 'b', values: [1, 0.5] },
      { id: 'c', values: [2, 0.5] },
    ]);
  });

  test('an import may start within a row group', async () => {
    const ids = (await cellsOf(parquet([['a', 'b', 'c'], ['d']]), 2)) as { id: string }[];
    assert.deepEqual(
      ids.map(({ id }) => id),
      ['c', 'd'],
    );
  });

  test('a cut file is an error', async () => {
    const file = parquet([['a']]);
    const cut = new Uint8Array(await file.slice(0, file.size - 9).arrayBuffer());
    await assert.rejects(openRows(fileOf('a.parquet', cut)), /expected Parquet/);
  });
});

describe('other files', () => {
  test('are refused with what they are', async () => {
    await assert.rejects(openRows(fileOf('a.gz', Uint8Array.of(0x1f, 0x8b, 8))), /gzip/);
    await assert.rejects(openRows(fileOf('a.png', Uint8Array.of(0x89, 0x50, 0))), /another format/);
    await assert.rejects(openRows(fileOf('a.csv')), /empty/);
  });
});
