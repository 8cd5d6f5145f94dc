// The readers of JSON arrays and CSV. Files of other programs are in formats.ci.test.ts.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { elementsOf } from '../../../src/cli/readers/byte-stream.js';
import { folderOfTests } from './read-files.js';

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

  it('is cut alike wherever chunks begin', async () => {
    const bytes = Buffer.from(`[${rows.join(', ')}]`);
    for (let size = 1; size < 20; size++) {
      async function* chunks() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
      }
      const found: string[] = [];
      for await (const { bytes: element } of elementsOf('x', chunks())) {
        found.push(Buffer.from(element).toString().trim());
      }
      assert.deepEqual(found, rows);
    }
  });

  it('that is not whole or not alone is reported with the line', async () => {
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

describe('CSV', () => {
  it('tells texts in quotes from numbers, wherever the quotes stand', async () => {
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
});
