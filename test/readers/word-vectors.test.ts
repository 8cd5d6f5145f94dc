// Words with their vectors: GloVe, word2vec and fastText.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openInput } from '../../src/cli/files/file-source.js';
import { formatOf, openRows } from '../../src/readers/formats.js';
import { folderOfTests, READ_OPTIONS, vectorsOf } from './read-files.js';

const { batchesOf, path, write } = folderOfTests();

const WORDS: readonly (readonly [string, readonly number[]])[] = [
  ['the', [0.5, -1, 2e-3]],
  [',', [1, 2, 3]],
  ['. . .', [4, 5, 6]],
  ['é\u00a0x', [7, 8, -0]],
  ['2024', [9, 10, 11]],
];
const EXPECTED = WORDS.map(([word, values]) => [word, [...Float32Array.from(values)]]);

const lineOf = (word: string, values: readonly number[]) =>
  `${word} ${values.map((value) => (Object.is(value, -0) ? '-0' : value)).join(' ')}`;
const LINES = WORDS.map(([word, values]) => lineOf(word, values));

/** The binary format with a line feed after each vector, as word2vec writes it, or without, as gensim does. */
function binary(words: typeof WORDS, end: string): Buffer {
  const rows = words.flatMap(([word, values]) => [
    Buffer.from(`${word} `),
    Buffer.from(Float32Array.from(values).buffer),
    Buffer.from(end),
  ]);
  return Buffer.concat([Buffer.from(`${words.length} 3\n`), ...rows]);
}

async function rowsOf(name: string, startRow = 0, rowsPerBatch = 2): Promise<unknown[]> {
  const batches = await batchesOf(name, { rowsPerBatch }, startRow);
  const vectors = vectorsOf(batches);
  return batches.flatMap(({ ids }) => ids ?? []).map((id, row) => [id, vectors[row]]);
}

describe('words with vectors', () => {
  it('are read from text with and without a header, from any row on', async () => {
    const header = `${WORDS.length} 3\n`;
    for (const [name, content] of [
      ['glove.txt', LINES.join('\n')],
      ['glove-end.txt', `${LINES.join('\n')}\n`],
      ['glove.txt.gz', gzipSync(LINES.join('\n'))],
      // word2vec ends lines with a space.
      ['word2vec.txt', `${header}${LINES.join(' \n')} \n`],
      ['fasttext.vec', `${header}${LINES.join('\r\n')}\r\n`],
    ] as const) {
      write(name, content);
      for (const start of [0, 1, 3, 5]) {
        assert.deepEqual(await rowsOf(name, start), EXPECTED.slice(start), `${name} ${start}`);
      }
    }
    // The first bytes are text although they contain a control character.
    write('odd.vec', `2 3\n\u001f 1 2.5 -3\nb 4 5 6\n`);
    assert.deepEqual(await rowsOf('odd.vec'), [
      ['\u001f', [1, 2.5, -3]],
      ['b', [4, 5, 6]],
    ]);
    write('latin1.vec', Buffer.from('2 3\na 1 2 3\n\xe9 4 5 6\n', 'latin1'));
    await assert.rejects(rowsOf('latin1.vec'), /latin1\.vec:3: invalid UTF-8; convert the file/);
    const [batch] = await batchesOf('word2vec.txt');
    assert.equal(batch!.location(0), `${path('word2vec.txt')}:2`);
  });

  it('are read from the binary form of word2vec, from any row on', async () => {
    // In the binary format, a word ends at the first space.
    const words = WORDS.filter(([word]) => !word.includes(' '));
    const expected = EXPECTED.filter(([word]) => !(word as string).includes(' '));
    for (const end of ['\n', '']) {
      for (const name of ['vectors.bin', 'vectors.bin.gz', 'vectors']) {
        const bytes = binary(words, end);
        write(name, name.endsWith('.gz') ? gzipSync(bytes) : bytes);
        for (const start of [0, 1, 4]) {
          assert.deepEqual(await rowsOf(name, start), expected.slice(start), `${name} ${start}`);
        }
      }
    }
    // The file is longer than the chunks in which it is read.
    const nameOf = (n: number) => `${n}${'w'.repeat(n === 0 ? 1 : 2_000)}`;
    const long = Array.from({ length: 1_000 }, (_, n) => [nameOf(n), [n, 0.1, 1e-9]] as const);
    const rows = await rowsOf(write('long.bin', binary(long, '\n')), 0, 5_000);
    assert.equal(rows.length, long.length);
    for (const n of [0, 500, 999]) {
      assert.deepEqual(rows[n], [nameOf(n), [...Float32Array.of(n, 0.1, 1e-9)]]);
    }
  });

  it('are recognized by the first word, which a table of numbers lacks', async () => {
    for (const [content, format] of [
      ['the 0.1 -2 3e-5\n', 'glove'],
      [`the ${'0.12345 '.repeat(300)}\n`, 'glove'],
      ['2 3\nthe 1 2 3\n', 'word2vec'],
      ['[1 2 3 4\n 5 6 7 8]\n', 'ndjson'],
      ['a line of 3 words\n', undefined],
      ['1.5 2.5 3.5 4.5\n', undefined],
      ['id 1\n', undefined],
    ] as const) {
      const source = await openInput(path(write('unnamed.txt', content)));
      if (format === undefined) assert.throws(() => formatOf(source), /cannot detect the format/);
      else assert.equal(formatOf(source), format);
    }
    const numbers = await openInput(path(write('numbers.txt', '1 2 3\n4 5 6\n')));
    const batches = [];
    const reader = await openRows(numbers, 'glove', READ_OPTIONS);
    for await (const batch of reader.batches(0)) batches.push(batch);
    assert.deepEqual(batches[0]!.ids, ['1', '4']);
  });

  it('are refused with their location if they are damaged', async () => {
    const bytes = binary([...WORDS.slice(0, 2)], '\n');
    for (const [name, content, message] of [
      ['a.txt', 'the 1 2 3\nof 1 2\n', /a\.txt:2: found 2 values, expected 3 after the word$/],
      ['b.txt', 'the 1 2 3\nof 0.5 1 2 3\n', /b\.txt:2: found 4 values, expected 3/],
      ['c.txt', 'the 1 2 3\nof 1 x 3\n', /c\.txt:2: value 2 is "x", expected a float32 number/],
      ['d.txt', 'the 1 2 3\nof 1 1e39 3\n', /d\.txt:2: value 2 is "1e39", expected a float32/],
      ['e.txt', 'the 1 2 3\n 1 2 3\n', /e\.txt:2: the word is empty/],
      ['f.txt', '3 3\nthe 1 2 3\n', /f\.txt: found 1 word, expected the 3 of the first line$/],
      ['g.txt', '1 0\nthe\n', /g\.txt:1: found dimension 0, expected 1 to/],
      ['h.vec', 'the 1 2 3\n', /h\.vec:1: expected the number of words .* use --format glove/],
      ['a.bin', bytes.subarray(0, 20), /a\.bin: found 1 word, expected the 2 of the first line$/],
      ['b.bin', bytes.subarray(0, bytes.length - 3), /b\.bin, row 2: .* after 10 of 12 bytes$/],
      ['c.bin', Buffer.concat([bytes, Buffer.from('x')]), /c\.bin: found more than 2 words$/],
      ['d.bin', binary([['a', [Number.NaN, 1, 2]]], ''), /d\.bin, row 1: value 1 of "a" is NaN/],
      [
        'e.bin',
        Buffer.concat([Buffer.from('1 3\n'), Buffer.of(0xff, 0x20), Buffer.alloc(12)]),
        /e\.bin, row 1: the word .* is not UTF-8/,
      ],
      [
        'f.bin',
        Buffer.concat([Buffer.from('2 3\n'), Buffer.alloc(20_000)]),
        /no space after the word/,
      ],
    ] as const) {
      await assert.rejects(batchesOf(write(name, content)), message);
    }
  });
});
