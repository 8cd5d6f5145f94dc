import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type ImportBatch, importBatches, openFile } from '../src/views/import/import-batches.js';
import { createImportReader } from '../src/views/import/import-reader.js';

function fileOf(name: string, ...parts: readonly (string | Uint8Array<ArrayBuffer>)[]) {
  return new File([...parts], name);
}

async function cellsOf(file: File): Promise<readonly object[]> {
  const reader = await (await openFile(file)).openRows();
  return (await reader.sample(100)).rows;
}

/** The batches that the console would import with its proposed plan. */
async function rowsOf(file: File, startRow = 0): Promise<ImportBatch[]> {
  const { plan, vectorChoices } = await createImportReader().open(file);
  const { dimension } = vectorChoices[0]!;
  const options = { plan: plan!, dimension, startRow, stopsAtBadRow: false };
  const batches: ImportBatch[] = [];
  for await (const batch of importBatches(await openFile(file), options)) batches.push(batch);
  return batches;
}

const summary = (batches: readonly ImportBatch[]) =>
  batches.flatMap(({ rows }) =>
    Array.from({ length: rows.rowCount }, (_, row) => [
      rows.ids?.[row],
      [...rows.values.subarray(row * rows.dimension, (row + 1) * rows.dimension)],
      rows.metadata?.[row],
    ]),
  );

const LINES =
  '{"id":1768907725507217523,"values":[1,2],"n":9007199254740993}\n\n  \r\n' +
  '{"id":"b","values":"3 4","metadata":{"m":1.0},"n":null}\n';
const EXPECTED = [
  ['1768907725507217523', [1, 2], '{"n":9007199254740993}'],
  ['b', [3, 4], '{"m":1.0,"n":null}'],
];

describe('a file in a browser', () => {
  test('is read like on the command line, with all digits of integers', async () => {
    const array = `[${LINES.trim().replace('\n\n  \r\n', ',')}]`;
    for (const file of [
      fileOf('a.jsonl', LINES),
      fileOf('a.json', array),
      fileOf('a.jsonl.gz', new Uint8Array(gzipSync(LINES))),
    ]) {
      assert.deepEqual(summary(await rowsOf(file)), EXPECTED, file.name);
      assert.deepEqual(summary(await rowsOf(file, 1)), EXPECTED.slice(1), file.name);
    }
  });

  test('may be split anywhere between two reads', async () => {
    const line = `{"values":[1,2],"text":"${'é'.repeat(1_000)}"}\n`;
    const count = Math.ceil((1.5 * 4 * 1024 * 1024) / new TextEncoder().encode(line).byteLength);
    const batches = await rowsOf(fileOf('a.jsonl', line.repeat(count)));
    assert.equal(summary(batches).length, count);
    assert.equal(batches.at(-1)!.share, 1);
  });

  test('of CSV uses the delimiter that is most frequent in the header', async () => {
    const expected = [['1', [2, 3], '{"b,c":"x"}']];
    for (const file of [
      fileOf('a.csv', 'id;"b,c";values\n1;"x";2 3\n'),
      fileOf('a.txt', '\ufeffid\tb,c\tvalues\r\n1\tx\t2 3\r\n'),
    ]) {
      assert.deepEqual(summary(await rowsOf(file)), expected);
    }
    assert.deepEqual(await cellsOf(fileOf('a.csv', 'a,b\n1\n3,"4\n5"\n')), [{ a: '3', b: '4\n5' }]);
  });

  test('of texts has them beside their metadata, in small batches', async () => {
    const lines = Array.from({ length: 300 }, (_, i) => (i === 1 ? '1,' : `${i},the cat ${i}`));
    const batches = await rowsOf(fileOf('a.csv', `id,text\n${lines.join('\n')}\n`));
    const [first, second] = batches;
    assert.equal(batches.length, 2);
    assert.deepEqual([first!.rows.rowCount, second!.rows.rowCount], [255, 44]);
    assert.deepEqual(first!.badRows, [{ row: 1, problem: 'expected a text in text, found null' }]);
    const [{ ids, texts, metadata, dimension }] = [first!.rows];
    assert.deepEqual(
      [ids![1], texts![1], metadata![1]],
      ['2', 'the cat 2', '{"text":"the cat 2"}'],
    );
    assert.equal(dimension, 0);
  });

  test('with vectors only has a single column', async () => {
    const bytes = new Uint8Array(8 + 16);
    bytes.set(new Uint8Array(Int32Array.of(2, 2).buffer));
    bytes.set(new Uint8Array(Float32Array.of(1, 2, 3, Number.NaN).buffer), 8);
    const [batch] = await rowsOf(fileOf('a.fbin', bytes));
    assert.deepEqual([...batch!.rows.values], [1, 2]);
    assert.deepEqual(batch!.badRows, [
      { row: 1, problem: 'values[1] is NaN, expected a finite float32 number' },
    ]);
  });

  test('that is not supported is rejected with a reason', async () => {
    const reader = createImportReader();
    const png = fileOf('a.png', Uint8Array.of(0x89, 0x50, 0));
    await assert.rejects(reader.open(png), /unknown format/);
    await assert.rejects(reader.open(fileOf('a.csv')), /empty/);
    await assert.rejects(reader.open(fileOf('a.csv', 'a,a\n1,2')), /duplicate column "a"/);
    const text = fileOf('a.jsonl', '{"a":"', Uint8Array.of(0xff), '"}');
    await assert.rejects(reader.open(text), /invalid UTF-8/);
    const hdf5 = fileOf('a.h5', Uint8Array.from(Buffer.from('\x89HDF\r\n\x1a\n', 'latin1')));
    await assert.rejects(reader.open(hdf5), /`sagitta import`/);
  });
});
