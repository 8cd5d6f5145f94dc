import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { exportText, filterOfIds } from '../src/views/browse/export-rows.js';

const ROWS = [
  {
    id: 'a',
    metadata: { title: 'x, "y"', author: { name: 'Ada' }, tags: ['s', 't'] },
    values: [1, 2],
  },
  { id: 'b', metadata: { title: 'ü' }, values: [0.5, -1] },
];

async function textOf(...parameters: Parameters<typeof exportText>): Promise<string> {
  let text = '';
  for await (const chunk of exportText(...parameters)) text += chunk;
  return text;
}

describe('an export written by the page', () => {
  test('contains the chosen paths as columns of CSV', async () => {
    const paths = ['title', 'author.name', 'tags'];
    assert.equal(
      await textOf(ROWS, { format: 'csv', paths, includeValues: true }),
      'id,title,author.name,tags,values\r\n' +
        'a,"x, ""y""",Ada,"[""s"",""t""]","[1,2]"\r\n' +
        'b,ü,,,"[0.5,-1]"\r\n',
    );
  });

  test('contains the chosen paths, or all metadata, as lines of JSON', async () => {
    const chosen = await textOf(ROWS, {
      format: 'ndjson',
      paths: ['author.name'],
      includeValues: false,
    });
    assert.deepEqual(
      chosen
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
      [
        { id: 'a', metadata: { 'author.name': 'Ada' } },
        { id: 'b', metadata: {} },
      ],
    );
    const all = await textOf(ROWS, { format: 'ndjson', includeValues: true });
    assert.deepEqual(
      all
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
      ROWS,
    );
  });

  test('keeps all digits of integers beyond 2^53', async () => {
    const rows = [{ id: 'a', metadata: { post: 1768907725507217523n, ids: [2n ** 64n - 1n] } }];
    const options = { paths: ['post', 'ids'], includeValues: false };
    assert.equal(
      await textOf(rows, { format: 'ndjson', ...options }),
      '{"id":"a","metadata":{"post":1768907725507217523,"ids":[18446744073709551615]}}\n',
    );
    assert.equal(
      await textOf(rows, { format: 'csv', ...options }),
      'id,post,ids\r\na,1768907725507217523,[18446744073709551615]\r\n',
    );
  });

  test('is complete and written in chunks', async () => {
    const many = Array.from({ length: 8_000 }, (_, i) => ({ id: `vector-${i}`, metadata: {} }));
    const chunks: string[] = [];
    const csv = { format: 'csv', paths: [], includeValues: false } as const;
    for await (const chunk of exportText(many, csv)) chunks.push(chunk);
    assert.ok(chunks.length > 1);
    assert.equal(chunks.join('').split('\r\n').length, 8_002);
  });
});

test('a selection becomes a filter only if that fits into a URL', () => {
  assert.deepEqual(filterOfIds(['a', 'b']), { $id: { $in: ['a', 'b'] } });
  assert.equal(filterOfIds(Array.from({ length: 2_000 }, (_, i) => `vector-${i}`)), undefined);
});
