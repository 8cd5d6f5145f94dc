import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rowField } from '../../../src/common/errors.js';
import {
  BATCH_BYTES_MAX,
  BATCH_LINES_MAX,
  cutLines,
  type LineBatch,
} from '../../../src/formats/text/line-cutter.js';
import { LINE_BYTES_MAX, lineTooLong } from '../../../src/server/ingest/ingest-batch.js';
import { createRandom, testSeed } from '../../database/harness.js';

/** Cuts the text, which arrives in chunks that end at `ends`. */
async function cut(text: Buffer, ends: readonly number[] = []): Promise<LineBatch[]> {
  const heldBytes: number[] = [];
  const chunks = async function* () {
    let start = 0;
    for (const end of [...ends, text.length]) {
      yield text.subarray(start, end);
      start = end;
    }
  };
  const batches: LineBatch[] = [];
  const allocate = (byteCount: number) => new Uint8Array(byteCount);
  const onBuffered = (count: number) => heldBytes.push(count);
  const options = { lineBytesMax: LINE_BYTES_MAX, tooLong: lineTooLong, allocate, onBuffered };
  for await (const batch of cutLines(chunks(), options)) batches.push(batch);
  assert.equal(heldBytes.at(-1), 0, 'nothing is held at the end');
  return batches;
}

const summary = (batches: readonly LineBatch[]) =>
  batches.map(({ firstRow, rowCount, firstLine, bytes }) => ({
    firstRow,
    rowCount,
    firstLine,
    text: Buffer.from(bytes).toString(),
  }));

describe('a stream of lines', () => {
  it('skips empty lines, accepts both kinds of newline, and needs none at the end', async () => {
    for (const text of ['a\n\nb\r\n\r\nc', '\n\r\na\nb\nc\n\n']) {
      const [batch, ...others] = await cut(Buffer.from(text));
      assert.equal(batch?.rowCount, 3, JSON.stringify(text));
      assert.deepEqual(others, []);
    }
    assert.deepEqual(await cut(Buffer.from('')), []);
    assert.deepEqual(await cut(Buffer.from('\n\r\n\n')), []);
  });

  it('is cut after the maximum number of lines, with row and line numbers', async () => {
    const lines = Array.from({ length: 2 * BATCH_LINES_MAX + 5 }, (_, i) =>
      i === 3 ? '' : `${i}`,
    );
    const batches = await cut(Buffer.from(lines.join('\n')));
    assert.deepEqual(
      batches.map(({ firstRow, rowCount, firstLine }) => [firstRow, rowCount, firstLine]),
      [
        [0, BATCH_LINES_MAX - 1, 1],
        [BATCH_LINES_MAX - 1, BATCH_LINES_MAX, BATCH_LINES_MAX + 1],
        [2 * BATCH_LINES_MAX - 1, 5, 2 * BATCH_LINES_MAX + 1],
      ],
    );
  });

  it('is cut after the maximum number of bytes, at the end of a line', async () => {
    const line = 'x'.repeat(BATCH_BYTES_MAX / 4);
    const batches = await cut(Buffer.from(`${line}\n`.repeat(9)));
    assert.deepEqual(
      batches.map(({ rowCount }) => rowCount),
      [4, 4, 1],
    );
    const exact = await cut(Buffer.from(`${'x'.repeat(BATCH_BYTES_MAX / 2 - 1)}\n`.repeat(3)));
    assert.deepEqual(
      exact.map(({ rowCount, bytes }) => [rowCount, bytes.length]),
      [
        [2, BATCH_BYTES_MAX],
        [1, BATCH_BYTES_MAX / 2],
      ],
    );
  });

  it('is cut identically however it arrives', async (t) => {
    const seed = testSeed();
    t.diagnostic(`seed ${seed}`);
    const random = createRandom(seed);
    for (let round = 0; round < 20; round++) {
      const pieces = Array.from({ length: 3_000 }, () => {
        const newline = random() < 0.5 ? '\n' : '\r\n';
        return random() < 0.2 ? newline : `${'\r'.repeat(random() * 3)}${random()}${newline}`;
      });
      const text = Buffer.from(pieces.join(''));
      const ends = Array.from({ length: 40 }, () => Math.floor(random() * text.length));
      ends.sort((a, b) => a - b);
      assert.deepEqual(summary(await cut(text, ends)), summary(await cut(text)));
    }
    const short = Buffer.from('\r\n\ra\n\r\r\nb\r\n');
    const everywhere = Array.from(short, (_, i) => i);
    assert.deepEqual(summary(await cut(short, everywhere)), summary(await cut(short)));
  });

  it('rejects a line without an end', async () => {
    const start = Buffer.from('a\n\n');
    for (const ends of [[], [BATCH_BYTES_MAX / 2]]) {
      const text = Buffer.concat([start, Buffer.alloc(LINE_BYTES_MAX + 1, 'x')]);
      await assert.rejects(cut(text, ends), (error: { code: string; issues: object[] }) => {
        assert.equal(error.code, 'limit_exceeded');
        assert.deepEqual(error.issues, [
          {
            location: rowField(1),
            code: 'limit_exceeded',
            detail: `Line 3 has more than ${LINE_BYTES_MAX} bytes; a line is one vector.`,
            expected: LINE_BYTES_MAX,
          },
        ]);
        return true;
      });
      assert.equal((await cut(text.subarray(0, -1), ends)).length, 1);
    }
  });
});
