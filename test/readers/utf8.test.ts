// The text of input files: byte order marks, and bytes that are not UTF-8.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { openCsv } from '../../src/readers/csv-rows.js';
import { textChunks } from '../../src/readers/utf8.js';
import { cut, READ_OPTIONS, sourceOf } from './read-files.js';

it('bytes that are not UTF-8 are an error with their line, wherever chunks end', async () => {
  for (const [what, bytes] of [
    ['a byte that begins no character', [0xff]],
    ['a character that does not go on', [0xe6, 0x97, 0x20]],
    ['a continuation without a beginning', [0x97, 0xa5]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a character with too many bytes', [0xc0, 0x80]],
    ['a character cut off by the end of the file', [0xf0, 0x9f, 0x90]],
  ] as const) {
    const text = Buffer.concat([Buffer.from('values,ä\n1,日本\n\n1,x'), Uint8Array.from(bytes)]);
    for (let chunkBytes = 1; chunkBytes <= text.length; chunkBytes++) {
      const reader = await openCsv(sourceOf('f', cut(text, chunkBytes)), READ_OPTIONS);
      const read = async () => {
        for await (const _ of reader.batches(0));
      };
      await assert.rejects(read, /^ReadError: f:4: invalid UTF-8/, `${what}, ${chunkBytes}`);
    }
  }
});

it('a byte order mark is skipped only at the beginning', async () => {
  const textOf = async (text: string) => {
    const parts: Uint8Array[] = [];
    const source = sourceOf('f', cut(Buffer.from(text), 2));
    for await (const chunk of textChunks(source)) parts.push(chunk);
    return Buffer.concat(parts).toString();
  };
  assert.equal(await textOf('\ufeffa\n\ufeffb'), 'a\n\ufeffb');
  assert.equal(await textOf('a'), 'a');
  assert.equal(await textOf('\ufeff'), '');
});
