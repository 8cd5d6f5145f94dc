import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { parseJsonInput, type VectorsAt } from '../../../src/server/bodies/json-body.js';
import { parseLinesInput, parseVectorsInput } from '../../../src/server/bodies/json-rows.js';
import {
  parseBothWays,
  readBothWays,
  withoutGeneratedIds,
  withoutIds,
} from '../../support/both-readers.js';
import { IS_NIGHTLY } from '../../support/nightly.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

const RUNS = IS_NIGHTLY ? 10_000 : 2_000;
const LIMITS = { ...DEFAULT_LIMITS, dimensionMax: 3, batchRowsMax: 3 };
const SHAPES = {
  '': { kind: 'dense', dimension: 2, metric: 'cosine' },
  words: { kind: 'sparse' },
} as const;

const space = fc.constantFrom('', '', '', ' ', '\t', '\r', '\n');
const number = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('0', '1', '-2.5', '1e3', '0.1', '-0', '1e-50') },
  { weight: 1, arbitrary: fc.constantFrom('1e39', '01', '1.', 'NaN', '"1"', 'null', '[1]', '-') },
  { weight: 3, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) },
);
const array = fc
  .tuple(fc.array(number, { minLength: 1, maxLength: 3 }), space)
  .map(([numbers, blank]) => `[${blank}${numbers.join(`${blank},`)}${blank}]`);
const vector = fc.oneof(
  { weight: 8, arbitrary: array },
  {
    weight: 2,
    arbitrary: fc.constantFrom('"AACAPwAAAAA="', '"no"', '[]', '7', '{}', 'null', '"\\""'),
  },
);
const id = fc.constantFrom('"a"', '"b"', '"\\u0061"', '"é"', '7', '""', '"]"');
const metadata = fc.constantFrom(
  '{}',
  '{"values":[1]}',
  '{"a":"\\"}"}',
  '{"$a":1}',
  '[]',
  '{"n":[[]]}',
);
const member = fc.oneof(
  { weight: 6, arbitrary: vector.map((text) => `"values":${text}`) },
  { weight: 4, arbitrary: vector.map((text) => `"vector":${text}`) },
  { weight: 3, arbitrary: id.map((text) => `"id":${text}`) },
  { weight: 3, arbitrary: metadata.map((text) => `"metadata":${text}`) },
  { weight: 1, arbitrary: vector.map((text) => `"v\\u0061lues":${text}`) },
  // Its values are not those of the row.
  {
    weight: 2,
    arbitrary: array.map((text) => `"sparse_vectors":{"words":{"indices":[7],"values":${text}}}`),
  },
  { weight: 1, arbitrary: fc.constantFrom('"mode":"insert"', '"idempotency_key":"k"', '"x":1') },
);
/** Usually a valid value. */
const usualRow = fc
  .tuple(id, fc.constantFrom('[1,2]', '[ 0.1, -1e-3 ]', '"AACAPwAAAAA="'), metadata)
  .map(([name, values, document]) => `{"id":${name},"values":${values},"metadata":${document}}`);
const row = fc.oneof(
  { weight: 12, arbitrary: usualRow },
  {
    weight: 9,
    arbitrary: fc
      .tuple(fc.array(member, { minLength: 1, maxLength: 3 }), space)
      .map(([members, blank]) => `{${blank}${members.join(`,${blank}`)}}`),
  },
  { weight: 2, arbitrary: vector },
);
const list = fc.array(row, { minLength: 1, maxLength: 3 }).map((rows) => `[${rows.join(',')}]`);
const body = fc.oneof(
  row,
  fc
    .tuple(fc.constantFrom('vectors', 'queries'), list, fc.option(member, { nil: null }))
    .map(([name, rows, last]) => `{"${name}":${rows}${last === null ? '' : `,${last}`}}`),
);

interface Damage {
  readonly at: number;
  readonly length: number;
  readonly text: string;
}

const damage: fc.Arbitrary<Damage> = fc.record({
  at: fc.nat(),
  length: fc.nat({ max: 3 }),
  text: fc.constantFrom('', ',', '"', '[', ']', '{', '}', '0', '\\', '\n', '\ufeff', '\xff', ':'),
});
/** The bytes, which are usually undamaged. */
const damages = fc.oneof(fc.constant([]), fc.array(damage, { maxLength: 2 }));

function bytesOf(text: string, all: readonly Damage[]): Buffer {
  let bytes = Buffer.from(text);
  for (const { at, length, text: inserted } of all) {
    const start = at % (bytes.length + 1);
    const encoding = inserted === '\xff' ? 'latin1' : 'utf8';
    const rest = bytes.subarray(Math.min(start + length, bytes.length));
    bytes = Buffer.concat([bytes.subarray(0, start), Buffer.from(inserted, encoding), rest]);
  }
  return bytes;
}

/** Throws unless enough runs were valid, since a test of errors alone would prove little. */
function checkShare(validCount: number): void {
  assert.ok(validCount > RUNS / 100, `only ${validCount} of ${RUNS} texts were valid`);
}

describe('a JSON body whose vectors are cut out', () => {
  it('gives the same rows or the same error as one that is parsed whole', () => {
    let validCount = 0;
    const pathId = fc.constantFrom(null, null, 'a');
    fc.assert(
      fc.property(body, damages, pathId, fc.boolean(), (text, all, path, hasRoom) => {
        const input = {
          body: bytesOf(text, all),
          isKeyed: false,
          // For two vectors.
          room: hasRoom ? new Uint8Array(16) : null,
          pathId: path,
          shapes: SHAPES,
          limits: LIMITS,
        };
        const { outcome } = parseBothWays(
          (cut) => parseVectorsInput(input, cut),
          withoutGeneratedIds,
        );
        if (outcome.ok) validCount++;
      }),
      { seed, numRuns: RUNS },
    );
    checkShare(validCount);
  });

  it('gives the same query, or another body, or the same error as one that is parsed whole', () => {
    let validCount = 0;
    const place = fc.constantFrom<VectorsAt>('vector', 'values', 'vectors', 'queries');
    fc.assert(
      fc.property(body, damages, place, (text, all, vectorsAt) => {
        const input = { body: bytesOf(text, all), isKeyed: true, vectorsAt, dimensionMax: 3 };
        if (parseBothWays((cut) => parseJsonInput(input, cut)).outcome.ok) validCount++;
      }),
      { seed, numRuns: RUNS },
    );
    checkShare(validCount);
  });

  it('gives the same lines or the same error as one that is parsed whole', () => {
    let validCount = 0;
    const lines = fc.tuple(fc.array(row, { minLength: 1, maxLength: 3 }), space);
    fc.assert(
      fc.property(lines, damages, ([rows, blank], all) => {
        const bytes = Uint8Array.from(bytesOf(rows.join(`${blank}\n`), all));
        const rowCount = Buffer.from(bytes)
          .toString('latin1')
          .split('\n')
          .filter((line) => line !== '' && line !== '\r').length;
        const room = null;
        const input = {
          bytes,
          room,
          firstRow: 5,
          firstLine: 7,
          rowCount,
          isKeyed: true,
          isPatch: false,
          shapes: SHAPES,
        };
        try {
          readBothWays((cut) => parseLinesInput({ ...input, limits: LIMITS }, cut), withoutIds);
          validCount++;
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
        }
      }),
      { seed, numRuns: RUNS },
    );
    checkShare(validCount);
  });
});
