// Readers of JSON arrays and CSV. Files written by other programs are in formats.ci.test.ts.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  Field,
  Float64,
  Int32,
  List,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { openInput } from '../../src/cli/files/file-source.js';
import { elementsOf } from '../../src/readers/byte-stream.js';
import { formatOf, openRows } from '../../src/readers/formats.js';
import type { BadRow, ReaderOptions } from '../../src/readers/reader-options.js';
import { fileOf as parquetOf } from '../formats/parquet/parquet-files.js';
import { cut, folderOfTests, READ_OPTIONS, sourceOf, vectorsOf } from './read-files.js';

const { batchesOf, path, write } = folderOfTests();

describe('a JSON array', () => {
  const rows = [
    '{"id": "a", "values": [1, 2], "metadata": {"t": "]},[\\"\\\\", "n": 1.0}}',
    '{"id": "b", "values": [3, 4],\n "metadata": {"list": [[1], {}]}}',
    '{"id": "c", "values": [5, 6]}',
  ];
  const readText = async (text: string, startRow = 0) => {
    const batches = await batchesOf(write('rows.json', text), { rowsPerBatch: 10 }, startRow);
    return batches.flatMap(({ ids, metadata, rowCount, location }) =>
      Array.from({ length: rowCount }, (_, row) => [ids![row], metadata![row], location(row)]),
    );
  };

  it('gives its elements as NDJSON gives its lines, with the line where each begins', async () => {
    const expected = [
      ['a', '{"t": "]},[\\"\\\\", "n": 1.0}', `${path('rows.json')}:2`],
      ['b', '{"list": [[1], {}]}', `${path('rows.json')}:4`],
      ['c', '{}', `${path('rows.json')}:6`],
    ];
    const text = `\n[${rows[0]},\n\n${rows[1]}\n,${rows[2]}\n]\n`;
    for (const start of [0, 1, 3]) {
      assert.deepEqual(await readText(text, start), expected.slice(start));
    }
    assert.deepEqual(await readText('[]'), []);
    assert.deepEqual(await readText(' [ \n ] '), []);
  });

  it('is split into the same rows wherever chunks begin', async () => {
    const bytes = Buffer.from(`[${rows.join(', ')}]`);
    for (let size = 1; size < 20; size++) {
      async function* chunks() {
        yield* cut(bytes, size);
      }
      const found: string[] = [];
      for await (const { bytes: element } of elementsOf('x', chunks())) {
        found.push(Buffer.from(element).toString().trim());
      }
      assert.deepEqual(found, rows);
    }
  });

  it('is reported with the line if it is cut off or followed by something else', async () => {
    for (const [text, message] of [
      [`[${rows[2]},\n`, /:2: the file ends within the JSON array/],
      [`[${rows[2]}]\n{`, /:2: found "\{", expected nothing after the JSON array/],
      [`[${rows[2]}\n,]`, /:2: not a JSON object/],
      [`[${rows[2]},,${rows[2]}]`, /:1: not a JSON object/],
      [`[\n7]`, /:2: not a JSON object/],
    ] as const) {
      await assert.rejects(readText(text), message);
    }
  });
});

describe('a file in an unsupported format', () => {
  const hex = (text: string) => Buffer.from(text, 'hex');

  it('is recognized, whatever its name or the requested format', async () => {
    for (const [bytes, message] of [
      [hex('28b52ffd206f4d020032040f16903b07'), /: found zstd, .*; decompress .* with zstd -d$/],
      [hex('fd377a585a000004e6d6b446'), /: found xz, .* with xz -d$/],
      [hex('425a68393141592653597e'), /: found bzip2, .* with bzip2 -d$/],
      [hex('04224d1864a7'), /: found lz4, .* with lz4 -d$/],
      [hex('800495b300000000'), /: found a Python pickle, .* numpy\.save$/],
      [Buffer.from('\x80\x03cpandas.core.frame\n', 'latin1'), /: found a Python pickle/],
      [hex('ba164f2f0c000000'), /: found a fastText model, .*; use the \.vec file/],
      ['SQLite format 3\0\x10\0', /: found a SQLite database/],
      ['version https://git-lfs.github.com/spec/v1\noid', /: found a Git LFS pointer/],
      ['<!DOCTYPE html><html>', /: found an HTML page/],
    ] as const) {
      for (const name of ['rows.ndjson', 'rows.csv', 'rows.parquet', 'rows.fvecs', 'rows.zst']) {
        await assert.rejects(batchesOf(write(name, bytes)), message);
      }
      const gzipped = write('rows.ndjson.gz', gzipSync(bytes));
      await assert.rejects(batchesOf(gzipped), message);
      const opening = openRows(await openInput(path('rows.csv')), 'arrow', READ_OPTIONS);
      await assert.rejects(opening, message);
    }
  });

  it('is not confused with vectors whose dimension looks like a pickle', async () => {
    // Dimensions such as 80 02 00 00 and 80 03 00 00 begin like a pickle.
    for (const dimension of [640, 896, 1_152, 1_408]) {
      const bytes = Buffer.alloc(4 + 4 * dimension);
      bytes.writeInt32LE(dimension);
      const [batch] = await batchesOf(write('pickle.fvecs', bytes));
      assert.equal(batch!.dimension, dimension);
    }
  });

  it('is refused as UTF-16 with and without a byte order mark', async () => {
    for (const text of ['{"id":"a","values":[1,2]}\n', 'id,values\na,1 2\n', '\ufeffid,values\n']) {
      const little = Buffer.from(text, 'utf16le');
      const big = Buffer.from(little).swap16();
      for (const [bytes, encoding] of [
        [little, 'UTF-16LE'],
        [big, 'UTF-16BE'],
      ] as const) {
        const expected = text.startsWith('\ufeff') ? 'UTF-16' : encoding;
        for (const name of ['rows.ndjson', 'rows.csv', 'rows']) {
          const message = new RegExp(
            `found text in ${expected}, .* iconv -f ${expected} -t UTF-8$`,
          );
          await assert.rejects(batchesOf(write(name, bytes)), message);
        }
      }
    }
  });
});

describe('an index of pandas', () => {
  const texts = ['a', 'b'];
  const table = new Table({
    id: vectorFromArray(texts, new Utf8()),
    values: vectorFromArray([[1], [2]], new List(new Field('item', new Float64()))),
    title: vectorFromArray(texts, new Utf8()),
    __index_level_0__: vectorFromArray([7, 8], new Int32()),
  });

  it('becomes metadata, is reported as an index, and is left out on request', async () => {
    for (const [name, content, index] of [
      ['index.arrow', tableToIPC(table, 'file'), '__index_level_0__'],
      ['index.arrows', tableToIPC(table, 'stream'), '__index_level_0__'],
      ['index.csv', ',id,values,title\n7,a,1,"a"\n8,b,2,"b"\n', ''],
      ['index.tsv', '""\tid\tvalues\ttitle\n7\ta\t1\t"a"\n8\tb\t2\t"b"\n', ''],
      ['again.csv', 'Unnamed: 0,id,values,title\n7,a,1,"a"\n8,b,2,"b"\n', 'Unnamed: 0'],
    ] as const) {
      const said: string[] = [];
      const read = async (options: Partial<ReaderOptions>) => {
        said.length = 0;
        const onIndex = (names: readonly string[]) => said.push(...names);
        const batches = await batchesOf(write(name, content), { onIndex, ...options });
        return batches.flatMap(({ metadata = [] }) => metadata).map((text) => JSON.parse(text));
      };
      assert.deepEqual(await read({}), [
        { [index]: 7, title: 'a' },
        { [index]: 8, title: 'b' },
      ]);
      assert.deepEqual(said, [index]);
      assert.deepEqual(await read({ withoutIndex: true }), [{ title: 'a' }, { title: 'b' }]);
      assert.deepEqual(said, []);
      // Naming the column selects it.
      if (index === '') continue;
      const named = { fields: [index], withoutIndex: true };
      assert.deepEqual(await read(named), [{ [index]: 7 }, { [index]: 8 }]);
      assert.deepEqual(said, []);
    }
  });
});

describe('NaN in metadata', () => {
  const inTable = () => {
    const numbers = new List(new Field('item', new Float64(), true));
    return tableToIPC(
      new Table({
        values: vectorFromArray([[1], [2]], numbers),
        x: vectorFromArray([Number.NaN, 1.5], new Float64()),
        l: vectorFromArray([[Number.NaN, 2], [Number.NaN]], numbers),
      }),
      'stream',
    );
  };

  it('becomes null on request, and is refused otherwise where it is a number', async () => {
    for (const [name, content] of [
      ['nan.arrows', inTable()],
      [
        'nan.ndjson',
        '{"values":[1],"metadata":{"x":NaN,"l":[NaN,2]}}\n{"values":[2],"metadata":{"x":1.5,"l":[NaN]}}\n',
      ],
    ] as const) {
      await assert.rejects(batchesOf(write(name, content)), /NaN.* --nan null/);
      const [batch] = await batchesOf(name, { isNanNull: true });
      assert.deepEqual(
        batch!.metadata!.map((text) => JSON.parse(text)),
        [
          { x: null, l: [null, 2] },
          { x: 1.5, l: [null] },
        ],
      );
    }
    const json = write('nan-json.csv', 'values,metadata\n1,"{""x"":NaN}"\n');
    assert.deepEqual((await batchesOf(json, { isNanNull: true }))[0]!.metadata, ['{"x":null}']);
    const csv = write('nan.csv', 'values,x,y\n1,NaN,"NaN"\n');
    const metadataOf = async (options: Partial<ReaderOptions>) =>
      (await batchesOf(csv, options))[0]!.metadata;
    assert.deepEqual(await metadataOf({}), ['{"x":"NaN","y":"NaN"}']);
    assert.deepEqual(await metadataOf({ isNanNull: true }), ['{"x":null,"y":"NaN"}']);
  });

  it('is kept in text, refused in vectors, and infinity remains an error', async () => {
    const text = write('text.ndjson', '{"values":[1],"metadata":{"NaN":"NaN \\"NaN","NaNs":1}}\n');
    const [batch] = await batchesOf(text, { isNanNull: true });
    assert.deepEqual(batch!.metadata, ['{"NaN":"NaN \\"NaN","NaNs":1}']);
    const vector = write('vector.ndjson', '{"values":[1,NaN]}\n');
    const reading = batchesOf(vector, { isNanNull: true });
    await assert.rejects(reading, /:1: values\[1\] is null, expected a number/);
    const infinite = new Table({
      values: vectorFromArray([[1]], new List(new Field('item', new Float64(), true))),
      x: vectorFromArray([Infinity], new Float64()),
    });
    const path = write('infinite.arrows', tableToIPC(infinite, 'stream'));
    await assert.rejects(batchesOf(path, { isNanNull: true }), /found Infinity/);
  });
});

describe('Parquet', () => {
  it('may have row groups without rows, anywhere', async () => {
    const groups = [[], [['a', 'b']], [[]], [['c'], ['d', 'e']], []];
    const { bytes } = parquetOf({ dimension: 2, groups });
    const name = write('empty-groups.parquet', bytes);
    for (const [start, ids] of [
      [0, ['a', 'b', 'c', 'd', 'e']],
      [2, ['c', 'd', 'e']],
      [3, ['d', 'e']],
      [5, []],
    ] as const) {
      const batches = await batchesOf(name, { fields: [] }, start);
      assert.deepEqual(
        batches.flatMap((batch) => batch.ids ?? []),
        ids,
      );
    }
    const none = write('no-rows.parquet', parquetOf({ dimension: 2, groups: [[]] }).bytes);
    assert.deepEqual(await batchesOf(none, { fields: [] }), []);
  });
});

describe('a file of plain vectors', () => {
  it('yields the same rows wherever the chunks of a pipe begin', async () => {
    const values = Float32Array.from({ length: 40 }, (_, at) => at / 8);
    const bytes = Buffer.concat([
      Buffer.from(Int32Array.of(20, 2).buffer),
      Buffer.from(values.buffer),
    ]);
    for (const chunkBytes of [1, 3, 7, 9, 50]) {
      const source = sourceOf('piped.fbin', cut(bytes, chunkBytes));
      const found: number[] = [];
      const reader = await openRows(source, 'fbin', READ_OPTIONS);
      for await (const batch of reader.batches(0)) found.push(...batch.values);
      assert.deepEqual(found, [...values], `${chunkBytes}`);
    }
  });
});

describe('CSV', () => {
  it('distinguishes quoted text from numbers, wherever the quotes are', async () => {
    const name = write(
      'quotes.csv',
      'id,values,a,b,c\r\n' +
        '1,"[1, 2]",7,"7",\r\n' +
        '\r\n' +
        '"2","[1, 2]","a ""b"", c","8\n9",""\r\n' +
        '3,1 2,"""7""",true,"true"\r\n',
    );
    const batches = await batchesOf(name, { rowsPerBatch: 10 });
    assert.deepEqual(batches[0]!.ids, ['1', '2', '3']);
    assert.deepEqual(batches[0]!.metadata, [
      '{"a":7,"b":"7","c":null}',
      '{"a":"a \\"b\\", c","b":"8\\n9","c":""}',
      '{"a":"\\"7\\"","b":true,"c":"true"}',
    ]);
  });

  const readCsv = async (text: string, options: Partial<ReaderOptions> = {}) => {
    const [batch] = await batchesOf(write('numbers.csv', text), { rowsPerBatch: 10, ...options });
    return { values: vectorsOf([batch!]), metadata: batch!.metadata };
  };
  const semicolons = { delimiter: ';' };

  it('refuses a vector with two kinds of separators, which may have decimal commas', async () => {
    for (const [cell, found] of [
      ['0,1 0,2 0,3', '"," and " "'],
      ['0,1;0,2;0,3', '"," and ";"'],
      ['[0,1; 0,2; 0,3]', '"," and ";"'],
      ['0,1, 0,2', '"," and ", "'],
      ['1,2, 3', '"," and ", "'],
      ['1 2;3 4', '";" and " "'],
      ['0.1, 0.2 0.3', '"," and " "'],
    ] as const) {
      const text = `id;values\na;1 2\nb;"${cell}"\n`;
      await assert.rejects(readCsv(text, semicolons), (error: Error) => {
        assert.ok(error.message.includes('numbers.csv:3: found '), error.message);
        assert.ok(error.message.includes(`found ${found} between the values of`), error.message);
        assert.match(error.message, /expected one separator; .* use --decimal ,$/);
        return true;
      });
    }
    for (const cell of [
      '1, 2, 3',
      '1,2,3',
      '1 , 2,\n3',
      '1,2,\n3',
      '1  2\n3',
      '1;2; 3',
      '{1.0,2, 3}',
    ]) {
      const { values } = await readCsv(`id;values\na;"${cell}"\n`, semicolons);
      assert.deepEqual(values, [[1, 2, 3]], cell);
    }
  });

  it('reads decimal commas in vectors with --decimal', async () => {
    const options = { ...semicolons, decimal: ',' } as const;
    for (const cell of ['0,5 -1,25 2', '0,5;-1,25;2', '[0,5; -1,25e0; 2,]', '0,5, -1,25, 2']) {
      const { values } = await readCsv(`values\n"${cell}"\n`, options);
      assert.deepEqual(values, [[0.5, -1.25, 2]], cell);
    }
    const { values } = await readCsv('x;y\n0,5;2\n', { ...options, vectorColumns: ['x', 'y'] });
    assert.deepEqual(values, [[0.5, 2]]);
    for (const [cell, message] of [
      ['1,5;2 3,5', /:2: found ";" and " " between .*, expected one separator and decimal commas$/],
      ['1,5;1.000', /:2: value 2 is "1\.000", expected a float32 number with a decimal comma/],
      ['1,5;1,0,0', /:2: value 2 is "1,0,0", expected a float32 number with a decimal comma/],
    ] as const) {
      await assert.rejects(readCsv(`values\n"${cell}"\n`, options), message);
    }
  });

  it('suggests --delimiter for a file with a different delimiter', async () => {
    for (const [text, spelling] of [
      ['id;values\na;1 2\n', "';'"],
      ['id\tvalues\na\t1 2\n', "'\\t'"],
      ['id|values|note, with comma\n', "'|'"],
    ] as const) {
      const delimiter = text.includes(',') ? ';' : ',';
      await assert.rejects(readCsv(text, { delimiter }), (error: Error) => {
        assert.match(error.message, /numbers\.csv:1: found the single column "id/);
        assert.ok(error.message.endsWith(`use --delimiter ${spelling}`), error.message);
        return true;
      });
    }
    assert.deepEqual((await readCsv('values\n1 2\n')).values, [[1, 2]]);
  });

  it('suggests --decimal for a decimal comma in a value column', async () => {
    const columns = { ...semicolons, vectorColumns: ['x', 'y'] };
    await assert.rejects(
      readCsv('x;y\n0,5;2\n', columns),
      /:2: value 1 is "0,5", expected a float32 number; if commas are decimal, use --decimal ,$/,
    );
    await assert.rejects(readCsv('x;y\n2;a\n', columns), /value 2 is "a", .* float32 number$/);
  });

  it('reads decimal commas in metadata with --decimal', async () => {
    const text = 'values;a;b;c;d\n1 2;2,5;"2,5";1.000;7\n';
    assert.deepEqual((await readCsv(text, semicolons)).metadata, [
      '{"a":"2,5","b":"2,5","c":1.000,"d":7}',
    ]);
    assert.deepEqual((await readCsv(text, { ...semicolons, decimal: ',' })).metadata, [
      '{"a":2.5,"b":"2,5","c":"1.000","d":7}',
    ]);
    // Where commas are delimiters, a number with a decimal comma is quoted.
    const quoted = 'values,a,b\n1 2,"-2,5e3","1,2,3"\n';
    assert.deepEqual((await readCsv(quoted, { decimal: ',' })).metadata, [
      '{"a":-2.5e3,"b":"1,2,3"}',
    ]);
  });
});

describe('bad rows', () => {
  const numbers = new List(new Field('item', new Float64(), true));
  const table = new Table({
    id: vectorFromArray(['a', 'b', 'c', 'd', 'e'], new Utf8()),
    values: vectorFromArray([[1, 2], [3], [5, 6], [7, null], [9, 10]], numbers),
  });
  const contents = [
    ['bad.csv', 'id,values\na,1 2\nb,3\nc,5 6\nd,7 x\ne,9 10\n'],
    [
      'bad.ndjson',
      '{"id":"a","values":[1,2]}\n{"id":"b","values":[3]}\n{"id":"c","values":[5,6]}\n{"id"\n{"id":"e","values":[9,10]}\n',
    ],
    ['bad.arrow', tableToIPC(table, 'file')],
    ['bad.arrows', tableToIPC(table, 'stream')],
  ] as const;

  it('are skipped and reported with number and problem, in every text and column format', async () => {
    for (const [name, content] of contents) {
      write(name, content);
      const bad: number[] = [];
      const onBadRow = ({ row, problem }: BadRow) => {
        assert.ok(problem.length > 0 && !problem.includes(name), problem);
        bad.push(row);
        return 'skip' as const;
      };
      const batches = await batchesOf(name, { onBadRow, dimension: 2, rowsPerBatch: 2 });
      assert.deepEqual(bad, [1, 3], name);
      const rows = batches.flatMap(({ rowCount, ids, fileRow }) =>
        Array.from({ length: rowCount }, (_, row) => [ids![row], fileRow(row)]),
      );
      assert.deepEqual(rows, [
        ['a', 0],
        ['c', 2],
        ['e', 4],
      ]);
      assert.deepEqual(vectorsOf(batches), [
        [1, 2],
        [5, 6],
        [9, 10],
      ]);
      assert.equal(batches.at(-1)!.endRow, 5);
    }
  });

  it('stop the reading before them on request', async () => {
    for (const [name] of contents) {
      const batches = await batchesOf(name, { onBadRow: () => 'stop', rowsPerBatch: 10 }, 2);
      assert.deepEqual(vectorsOf(batches), [[5, 6]], name);
      assert.equal(batches.at(-1)!.endRow, 3);
    }
  });
});

describe('a vector', () => {
  it('may have a column for each value, or be text, in every format', async () => {
    const table = new Table({
      d0: vectorFromArray([1, 3], new Int32()),
      d1: vectorFromArray([2.5, 4], new Float64()),
      text: vectorFromArray(['[1, 2.5]', '3 4'], new Utf8()),
    });
    for (const [name, content] of [
      ['numbers.arrows', tableToIPC(table, 'stream')],
      ['numbers.csv', 'd0,d1,text\n1,2.5,"[1, 2.5]"\n3,4,3 4\n'],
      ['numbers.ndjson', '{"d0":1,"d1":2.5,"text":"[1, 2.5]"}\n{"d0":3,"d1":4,"text":"3 4"}\n'],
    ] as const) {
      write(name, content);
      for (const options of [{ vectorColumns: ['d0', 'd1'] }, { valuesField: 'text' }]) {
        const batches = await batchesOf(name, { ...options, fields: [] });
        assert.deepEqual(vectorsOf(batches), [
          [1, 2.5],
          [3, 4],
        ]);
      }
    }
  });
});

it('a sample holds the first rows as they are in the file', async () => {
  const file = parquetOf({ dimension: 2, groups: [[['a', 'b']], [['c']]] });
  write('sample.parquet', file.bytes);
  write('sample.csv', 'id,n\na,"1"\n');
  write('sample.ndjson', '{"id":"a"}\n{"n":12345678901234567890}\n');
  const sampleOf = async (name: string) => {
    const source = await openInput(path(name));
    return await (await openRows(source, formatOf(source), READ_OPTIONS)).sample(2);
  };
  const { columns, rows } = await sampleOf('sample.parquet');
  assert.ok(columns.includes('id') && columns.includes('values'));
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['a', 'b'],
  );
  assert.deepEqual(await sampleOf('sample.csv'), {
    columns: ['id', 'n'],
    rows: [{ id: 'a', n: '1' }],
  });
  assert.deepEqual(await sampleOf('sample.ndjson'), {
    columns: ['id', 'n'],
    rows: [{ id: 'a' }, { n: 12345678901234567890n }],
  });
});
