// NDJSON rows: conversion, and error messages for invalid lines.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { encodeValues } from '@sagitta/client';
import { openJson, rowOfLine } from '../../src/readers/json-rows.js';
import type { ReaderOptions } from '../../src/readers/reader-options.js';
import { cut, READ_OPTIONS, sourceOf } from './read-files.js';

const ONE_TWO = encodeValues(new Float32Array([1, 2]));

interface Row {
  readonly id: string | undefined;
  readonly metadata: string;
}

const GOOD: readonly [string, string, Partial<ReaderOptions>, Row][] = [
  [
    'metadata stays as it is spelled',
    '{"id":"a","values":[1,2],"metadata":{"n": 1.0}}',
    {},
    { id: 'a', metadata: '{"n": 1.0}' },
  ],
  ['values may be base64', `{"values":"${ONE_TWO}"}`, {}, { id: undefined, metadata: '{}' }],
  [
    'a whole number becomes an id with all its digits',
    '{"id":12345678901234567890,"values":[1,2]}',
    {},
    { id: '12345678901234567890', metadata: '{}' },
  ],
  [
    'fields can have other names, and members of choice become metadata',
    '{"_id":"a","vector":[1,2],"title":"T","year":2024,"junk":0}',
    { idField: '_id', valuesField: 'vector', fields: ['title', 'year', 'absent'] },
    { id: 'a', metadata: '{"title":"T","year":2024}' },
  ],
];

for (const [name, line, options, expected] of GOOD) {
  it(name, () => {
    const { values, ...row } = rowOfLine('f:1', line, { ...READ_OPTIONS, ...options });
    assert.deepEqual(row, expected);
    assert.deepEqual([...values], [1, 2]);
  });
}

const BAD: readonly [string, Partial<ReaderOptions>, string][] = [
  ['nonsense', {}, 'not a JSON object: expected { at character 1, found "nonsense"'],
  ['{"values":[1,"2"]}', {}, 'values[1] is "2", expected a number'],
  ['{"values":[null]}', {}, 'values[0] is null, expected a number'],
  ['{"values":[1e39]}', {}, 'values[0] is 1e+39, which exceeds the float32 range'],
  ['{"values":[1,]}', {}, 'values is not valid JSON: '],
  ['{"values":"abc"}', {}, 'values is "abc", expected an array of numbers or base64'],
  ['{"values":"AAAAAAA="}', {}, 'values is "AAAAAAA=", expected an array of numbers or base64'],
  ['{"values":"AADAfw=="}', {}, 'values[0] is NaN, which exceeds the float32 range'],
  ['{"values":7}', {}, 'values is 7, expected an array of numbers or base64'],
  ['{"id":"a"}', {}, 'the member "values" (the vector) is missing'],
  ['{"id":1.5,"values":[1]}', {}, 'id is 1.5, expected a string or an integer'],
  ['{"id":null,"values":[1]}', {}, 'id is null, expected a string or an integer'],
  ['{"values":[1]}', { idField: 'id' }, 'the member "id" (the id) is missing'],
  ['{"values":[1],"metadata":[]}', {}, 'metadata is [], expected an object'],
  ['{"values":[1],"metadata":{"a":tru}}', {}, 'metadata is not valid JSON: '],
  [
    '{"values":[1],"metdata":{}}',
    {},
    'unknown member "metdata", expected id, values, metadata (select',
  ],
  ['{"values":[1],"values":[2]}', {}, 'not a JSON object: the member "values" appears twice'],
];

for (const [line, options, message] of BAD) {
  it(`rejects ${line}${options.idField ? ' where an id is required' : ''}`, () => {
    assert.throws(
      () => rowOfLine('rows.ndjson:7', line, { ...READ_OPTIONS, ...options }),
      (error: Error) => {
        assert.ok(error.message.startsWith(`rows.ndjson:7: ${message}`), error.message);
        return true;
      },
    );
  });
}

async function locationsOf(
  chunks: readonly (string | Uint8Array)[],
  startRow = 0,
): Promise<string[]> {
  const source = sourceOf(
    'f',
    chunks.map((chunk) => Buffer.from(chunk)),
  );
  const reader = await openJson(source, READ_OPTIONS);
  const places: string[] = [];
  for await (const batch of reader.batches(startRow)) {
    for (let row = 0; row < batch.rowCount; row++) {
      places.push(`${batch.location(row)} ${batch.ids?.[row]}`);
    }
  }
  return places;
}

it('lines are found wherever the chunks end, with and without a last newline', async () => {
  const text = '{"id":"ä","values":[1]}\r\n\n  \n{"id":"b","values":[2]}\n{"id":"c","values":[3]}';
  const bytes = Buffer.from(text);
  for (const chunkBytes of [1, 2, 7, 1_000]) {
    assert.deepEqual(await locationsOf(cut(bytes, chunkBytes)), ['f:1 ä', 'f:4 b', 'f:5 c']);
  }
  assert.deepEqual(await locationsOf([bytes], 1), ['f:4 b', 'f:5 c']);
  assert.deepEqual(await locationsOf([bytes], 3), []);
  assert.deepEqual(await locationsOf([]), []);
});

it('bytes that are not UTF-8 are an error with their line', async () => {
  const chunks = ['{"values":[1]}\n{"id":"', new Uint8Array([0xff]), '","values":[1]}\n'];
  await assert.rejects(locationsOf(chunks), {
    message: /^f:2: invalid UTF-8; convert the file with iconv/,
  });
});

it('rejects a file without newlines before it fills memory', async () => {
  const chunks = Array.from({ length: 20 }, () => ' '.repeat(1_000_000));
  await assert.rejects(locationsOf(chunks), /found a line of more than 16000000 bytes/);
});

it('reports a row of a different dimension with both locations', async () => {
  const chunks = ['{"values":[1]}\n\n{"values":[1,2]}\n'];
  await assert.rejects(locationsOf(chunks), {
    message: 'f:3: found 2 values, expected 1 as in f:1',
  });
});
