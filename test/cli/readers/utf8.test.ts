// Text of input files: the byte order mark, and bytes that are not UTF-8.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { checkUtf8, textChunks } from '../../../src/cli/readers/utf8.js';

async function* cut(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

it('characters are whole wherever chunks end', async () => {
  const text = 'aä\n日本語\n🐬🐬\n\n√x\n';
  for (let chunkBytes = 1; chunkBytes <= 9; chunkBytes++) {
    const chunks = checkUtf8('f', cut(Buffer.from(text), chunkBytes));
    assert.equal(await gather(chunks), text);
    for await (const chunk of checkUtf8('f', cut(Buffer.from(text), chunkBytes))) {
      assert.doesNotMatch(Buffer.from(chunk).toString(), /\ufffd/);
    }
  }
});

it('bytes that are not UTF-8 are an error with their line, wherever chunks end', async () => {
  for (const [what, bytes] of [
    ['a byte that begins no character', [0xff]],
    ['a character that does not go on', [0xe6, 0x97, 0x20]],
    ['a continuation without a beginning', [0x97, 0xa5]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a character with too many bytes', [0xc0, 0x80]],
    ['a character cut off by the end of the file', [0xf0, 0x9f, 0x90]],
  ] as const) {
    const text = Buffer.concat([Buffer.from('ä\n日本\n\nx'), Uint8Array.from(bytes)]);
    for (let chunkBytes = 1; chunkBytes <= text.length; chunkBytes++) {
      const reading = gather(checkUtf8('f', cut(text, chunkBytes)));
      await assert.rejects(reading, /^CliError: f:4: invalid UTF-8/, `${what}, ${chunkBytes}`);
    }
  }
});

it('a byte order mark is skipped at the beginning only', async () => {
  const textOf = (text: string) => {
    const bytes = Buffer.from(text);
    return gather(
      textChunks({ name: 'f', head: bytes, chunks: (start = 0) => cut(bytes.subarray(start), 2) }),
    );
  };
  assert.equal(await textOf('\ufeffa\n\ufeffb'), 'a\n\ufeffb');
  assert.equal(await textOf('a'), 'a');
  assert.equal(await textOf('\ufeff'), '');
});
