// CSV as an independent parser reads it, for every type of column and any text.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'csv-parse/sync';
import { createBitmap, setBit } from '../../../src/common/bitmap.js';
import { utf8ColumnOf } from '../../../src/common/utf8-column.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { CSV_TABLE } from '../../../src/server/replies/csv-table.js';
import { type TableColumn, tableOf } from '../../../src/server/replies/table.js';
import { Random, seedOf } from '../../segment/sample.js';

interface Chunk {
  readonly count: number;
  readonly texts: readonly string[];
  readonly numbers: readonly number[];
}

const PIECES = ['"', '""', ',', '\n', '\r\n', ' ', 'a', '1', "'", '\\', 'ü', '🜚', '=', '\t', '\0'];

const presenceOf = (count: number, isPresent: (row: number) => boolean) => {
  const presence = createBitmap(count);
  for (let row = 0; row < count; row++) if (isPresent(row)) setBit(presence, row);
  return presence;
};
const startsOf = (count: number, length: (row: number) => number) => {
  const starts = new Int32Array(count + 1);
  for (let row = 0; row < count; row++) starts[row + 1] = starts[row]! + length(row);
  return starts;
};
const isEven = (row: number) => row % 2 === 0;
const json = (value: unknown) => JSON.stringify(value);

/** A column of each type and its expected cells. */
const COLUMNS: readonly (TableColumn<Chunk> & {
  readonly cell: (chunk: Chunk, row: number) => string;
})[] = [
  {
    name: 'id',
    type: 'utf8',
    of({ texts }) {
      const { offsets, bytes } = utf8ColumnOf(['before', ...texts]);
      return { leaf: { offsets: offsets.subarray(1), bytes } };
    },
    cell: ({ texts }, row) => texts[row]!,
  },
  {
    name: 'na"me, with\nall',
    type: 'utf8',
    isNullable: true,
    of: ({ texts, count }) => ({
      leaf: utf8ColumnOf([...texts]),
      presence: presenceOf(count, isEven),
    }),
    cell: ({ texts }, row) => (isEven(row) ? texts[row]! : ''),
  },
  {
    name: 'document',
    type: 'json',
    of: ({ texts }) => ({
      leaf: utf8ColumnOf(texts.map((text) => `{ "t":\n${json(text)}}`)),
    }),
    cell: ({ texts }, row) => `{ "t": ${json(texts[row])}}`,
  },
  {
    name: 'float32',
    type: 'float32',
    of: ({ numbers }) => ({ leaf: Float32Array.from(numbers) }),
    cell: ({ numbers }, row) => String(numbers[row]),
  },
  {
    name: 'float64',
    type: 'float64',
    of: ({ numbers }) => ({
      leaf: Float64Array.from(numbers, (n) => (n === 0 ? -0 : n / 3)),
      presence: null,
    }),
    cell: ({ numbers }, row) => (numbers[row] === 0 ? '-0' : String(numbers[row]! / 3)),
  },
  {
    name: 'int64',
    type: 'int64',
    of: ({ numbers }) => ({
      leaf: BigInt64Array.from(numbers, (n) => 2n ** 60n + BigInt(n * 8)),
    }),
    cell: ({ numbers }, row) => String(2n ** 60n + BigInt(numbers[row]! * 8)),
  },
  {
    name: 'boolean',
    type: 'boolean',
    isNullable: true,
    of: ({ numbers, count }) => ({
      leaf: presenceOf(count, (row) => numbers[row]! > 0),
      presence: presenceOf(count, isEven),
    }),
    cell: ({ numbers }, row) => (isEven(row) ? String(numbers[row]! > 0) : ''),
  },
  {
    name: 'texts',
    type: { listOfNullable: 'utf8' },
    of: ({ texts, count }) => ({
      starts: startsOf(count, () => 2),
      presence: null,
      items: {
        leaf: utf8ColumnOf(texts.flatMap((text) => [text, ''])),
        presence: presenceOf(count * 2, isEven),
      },
    }),
    cell: ({ texts }, row) => json([texts[row], null]),
  },
  {
    name: 'vector',
    type: { vectorOf: 2 },
    isNullable: true,
    of: ({ numbers, count }) => ({
      vectors: Float32Array.from(numbers.flatMap((n) => [n, 0.5])),
      presence: presenceOf(count, isEven),
    }),
    cell: ({ numbers }, row) => (isEven(row) ? json([numbers[row], 0.5]) : ''),
  },
  {
    name: 'vectors',
    type: { vectorsOf: 1 },
    isNullable: true,
    of: ({ numbers, count }) => ({
      multi: {
        kind: 'multi',
        dimension: 1,
        starts: startsOf(count, (row) => (isEven(row) ? 1 : 0)),
        values: Float32Array.from(numbers.filter((_, row) => isEven(row))),
      },
    }),
    cell: ({ numbers }, row) => (isEven(row) ? json([[numbers[row]]]) : ''),
  },
  {
    name: 'indices',
    type: { listOf: 'uint32' },
    of: ({ count }) => ({
      starts: startsOf(count, (row) => row % 3),
      elements: Uint32Array.from({ length: count * 2 }, () => 2 ** 32 - 1),
    }),
    cell: (_, row) => json(new Array(row % 3).fill(2 ** 32 - 1)),
  },
];

function randomChunk(random: Random, count: number): Chunk {
  const text = () =>
    Array.from({ length: random.below(6) }, () => PIECES[random.below(PIECES.length)]!).join('');
  return {
    count,
    texts: Array.from({ length: count }, text),
    numbers: Array.from({ length: count }, () => random.below(9) - 4),
  };
}

async function csvOf(chunks: readonly Chunk[]): Promise<string> {
  const columns = COLUMNS.map(({ cell: _, ...column }) => column);
  const parts: Uint8Array[] = [];
  const pool = createInlinePool();
  for await (const part of CSV_TABLE.write(tableOf(columns, chunks, {}), pool)) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe('a table as CSV', () => {
  it('has the cells of every type of column as a parser reads them', async () => {
    const random = new Random(seedOf('csv'));
    for (let round = 0; round < 20; round++) {
      // Some chunks are long enough for the pool, and some are empty.
      const counts = [random.below(4), 0, random.below(60), round === 0 ? 2_000 : 1];
      const chunks = counts.map((count) => randomChunk(random, count));
      const [names, ...rows] = parse(await csvOf(chunks), { record_delimiter: '\n' }) as string[][];
      assert.deepEqual(
        names,
        COLUMNS.map(({ name }) => name),
      );
      const expected = chunks.flatMap((chunk) =>
        Array.from({ length: chunk.count }, (_, row) =>
          COLUMNS.map(({ cell }) => cell(chunk, row)),
        ),
      );
      assert.deepEqual(rows, expected);
    }
  });

  it('quotes all but numbers and booleans, so that text of digits stays text', async () => {
    const text = await csvOf([{ count: 1, texts: ['1'], numbers: [1] }]);
    const line = text.slice(text.indexOf('indices\n') + 8);
    assert.match(
      line,
      /^"1","1","\{ ""t"": ""1""\}",1,0\.3333333333333333,1152921504606846984,true,"\[/,
    );
  });

  it('has a line with the names when there is no row', async () => {
    const head =
      'id,"na""me, with\nall",document,float32,float64,int64,boolean,texts,vector,vectors,indices\n';
    assert.equal(await csvOf([]), head);
    assert.equal(await csvOf([{ count: 0, texts: [], numbers: [] }]), head);
  });
});
