// Lines of NDJSON: what a row becomes, and what is said of a line that is none.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { RowFields } from '../../src/cli/import-row.js';
import { readNdjsonRows, rowOfLine } from '../../src/cli/ndjson-rows.js';
import { encodeValues } from '../../src/client/client.js';

const DEFAULT: RowFields = {
  idField: 'id',
  isIdRequired: false,
  valuesField: 'values',
  metadataFields: undefined,
};
const ONE_TWO = encodeValues(new Float32Array([1, 2]));

const GOOD: readonly [string, string, Partial<RowFields>, string][] = [
  [
    'numbers travel as base64 and metadata as it is spelled',
    '{"id":"a","values":[1,2],"metadata":{"n": 1.0}}',
    {},
    `{"id":"a","values":"${ONE_TWO}","metadata":{"n": 1.0}}`,
  ],
  [
    'base64 is taken as it is',
    `{"values":"${ONE_TWO}"}`,
    {},
    `{"values":"${ONE_TWO}","metadata":{}}`,
  ],
  [
    'a whole number becomes an id with all its digits',
    '{"id":12345678901234567890,"values":[1,2]}',
    {},
    `{"id":"12345678901234567890","values":"${ONE_TWO}","metadata":{}}`,
  ],
  [
    'fields can have other names, and members of choice become metadata',
    '{"_id":"a","vector":[1,2],"title":"T","year":2024,"junk":0}',
    { idField: '_id', valuesField: 'vector', metadataFields: ['title', 'year', 'absent'] },
    `{"id":"a","values":"${ONE_TWO}","metadata":{"title":"T","year":2024}}`,
  ],
];

for (const [name, line, fields, text] of GOOD) {
  it(name, () => {
    const row = rowOfLine('f:1', line, { ...DEFAULT, ...fields });
    assert.equal(row.text, text);
    assert.equal(row.dimension, 2);
  });
}

const BAD: readonly [string, Partial<RowFields>, string][] = [
  ['nonsense', {}, 'not a JSON object: expected { at character 1, found "nonsense"'],
  ['{"values":[1,"2"]}', {}, 'values[1] is "2", expected a number'],
  ['{"values":[null]}', {}, 'values[0] is null, expected a number'],
  ['{"values":[1e39]}', {}, 'values[0] is 1e+39, expected a number within float32'],
  ['{"values":[1,]}', {}, 'values is not JSON: '],
  ['{"values":"abc"}', {}, 'values is "abc", expected numbers or base64'],
  ['{"values":"AAAAAAA="}', {}, 'values is "AAAAAAA=", expected numbers or base64'],
  ['{"values":"AADAfw=="}', {}, 'values[0] is NaN, expected a number within float32'],
  ['{"values":7}', {}, 'values is 7, expected numbers or base64'],
  ['{"id":"a"}', {}, 'found no member "values", expected the values of the vector'],
  ['{"id":1.5,"values":[1]}', {}, 'id is 1.5, expected a string or a whole number'],
  ['{"id":null,"values":[1]}', {}, 'id is null, expected a string or a whole number'],
  ['{"values":[1]}', { isIdRequired: true }, 'found no member "id", expected the id of the vector'],
  ['{"values":[1],"metadata":[]}', {}, 'metadata is [], expected an object'],
  ['{"values":[1],"metadata":{"a":tru}}', {}, 'metadata is not JSON: '],
  [
    '{"values":[1],"metdata":{}}',
    {},
    'found the member "metdata", expected id, values and metadata',
  ],
  ['{"values":[1],"values":[2]}', {}, 'not a JSON object: the member "values" appears twice'],
];

for (const [line, fields, message] of BAD) {
  it(`refuses ${line}${fields.isIdRequired ? ' where an id is required' : ''}`, () => {
    assert.throws(
      () => rowOfLine('rows.ndjson:7', line, { ...DEFAULT, ...fields }),
      (error: Error) => {
        assert.ok(error.message.startsWith(`rows.ndjson:7: ${message}`), error.message);
        return true;
      },
    );
  });
}

async function placesOf(chunks: readonly (string | Uint8Array)[]): Promise<string[]> {
  const bytes = (async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk);
  })();
  const places: string[] = [];
  for await (const row of readNdjsonRows('f', bytes, DEFAULT))
    places.push(`${row.place} ${row.id}`);
  return places;
}

it('lines are found wherever the chunks end, with and without a last newline', async () => {
  const text = '{"id":"ä","values":[1]}\r\n\n  \n{"id":"b","values":[2]}\n{"id":"c","values":[3]}';
  const bytes = Buffer.from(text);
  for (const chunkBytes of [1, 2, 7, 1_000]) {
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      chunks.push(bytes.subarray(at, at + chunkBytes));
    }
    assert.deepEqual(await placesOf(chunks), ['f:1 ä', 'f:4 b', 'f:5 c']);
  }
  assert.deepEqual(await placesOf([]), []);
});

it('bytes that are no UTF-8 are an error with their line', async () => {
  const chunks = ['{"values":[1]}\n{"id":"', new Uint8Array([0xff]), '","values":[1]}\n'];
  await assert.rejects(placesOf(chunks), { message: 'f:2: expected UTF-8, found other bytes' });
});

it('a file without newlines is refused before it fills the memory', async () => {
  const chunks = Array.from({ length: 20 }, () => ' '.repeat(1_000_000));
  await assert.rejects(placesOf(chunks), /expected one JSON object a line/);
});
