// Random filters over random documents: columns, incomplete columns, single documents and the
// oracle must give the same answer for every row.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasBit } from '../../src/common/bitmap.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import type { Json, JsonObject } from '../../src/common/types.js';
import { matchesDocument } from '../../src/filter/document.js';
import { evaluateFilter } from '../../src/filter/evaluate.js';
import { filterPaths } from '../../src/filter/filter-node.js';
import { parseFilter } from '../../src/filter/parse.js';
import { saysYes } from './oracle.js';
import { textOf, viewOf } from './view-of.js';

const SEED = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000);

const NUMBERS = [0, -0, 1, -1, 1.5, 10, 2 ** 53, -1e300, 5e-324, Number.MAX_VALUE];
// biome-ignore format: a table
const STRINGS = [
  '', 'a', 'ab', 'b', '1', '10', 'true', 'null', '2026-01-31', '\u0000', '\u007f', 'é', 'z', '\ue000',
  '\ufffd', '\uffff', '😀', '😀a', '𐀀', '\ud83d', '\ude00', 'a\ud83d', 'x'.repeat(300),
  `${'x'.repeat(299)}y`,
];
const KEYS = ['a', 'b', 'c', 'a.b', 'b.c', '', '__proto__', 'constructor', '😀'];
// biome-ignore format: a table
const PATHS = [
  ...KEYS, 'a.b.c', 'a.a', 'a.', '.', '.a', '__proto__.a', 'a.__proto__', 'constructor.name', 'z',
];

const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(...NUMBERS),
  fc.constantFrom<Json>(...STRINGS),
  fc.boolean(),
);
const scalarOrNull = fc.oneof({ weight: 5, arbitrary: scalar }, fc.constant(null));
const ordered = fc.constantFrom<Json>(...NUMBERS, ...STRINGS);

/** `Object.fromEntries` creates `__proto__` as an ordinary member. */
const objectOf = (key: fc.Arbitrary<string>, value: fc.Arbitrary<Json>, sizeMax: number) =>
  fc
    .array(fc.tuple(key, value), { maxLength: sizeMax })
    .map((entries) => Object.fromEntries(entries) as JsonObject);

const { value: documentValue } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    { weight: 6, arbitrary: scalarOrNull },
    { weight: 1, arbitrary: fc.constantFrom<Json>(Infinity, -Infinity) },
    {
      weight: 3,
      arbitrary: fc.array(fc.oneof(scalarOrNull, scalarOrNull, tie('value')), { maxLength: 5 }),
    },
    { weight: 3, arbitrary: objectOf(fc.constantFrom(...KEYS), tie('value'), 4) },
  ),
}));
const document = objectOf(fc.constantFrom(...KEYS), documentValue, 6);

const list = (value: fc.Arbitrary<Json>) => fc.array(value, { maxLength: 6 });
const entry = (name: string, operand: fc.Arbitrary<Json>) => fc.tuple(fc.constant(name), operand);

const { filter } = fc.letrec<{ filter: JsonObject; operators: JsonObject }>((tie) => ({
  operators: fc
    .array(
      fc.oneof(
        { weight: 2, arbitrary: fc.tuple(fc.constantFrom('$eq', '$ne'), scalarOrNull) },
        { weight: 2, arbitrary: fc.tuple(fc.constantFrom('$in', '$nin'), list(scalarOrNull)) },
        { weight: 4, arbitrary: fc.tuple(fc.constantFrom('$gt', '$gte', '$lt', '$lte'), ordered) },
        entry('$exists', fc.boolean()),
        entry('$contains', scalar),
        {
          weight: 2,
          arbitrary: fc.tuple(fc.constantFrom('$contains_any', '$contains_all'), list(scalar)),
        },
        entry('$not', tie('operators')),
      ),
      { minLength: 1, maxLength: 2 },
    )
    .map((entries) => Object.fromEntries(entries) as JsonObject),
  filter: fc
    .array(
      fc.oneof(
        { depthSize: 'small', maxDepth: 4 },
        { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...PATHS), scalarOrNull) },
        { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...PATHS), tie('operators')) },
        {
          weight: 3,
          arbitrary: fc.tuple(
            fc.constantFrom('$and', '$or'),
            fc.array(tie('filter'), { minLength: 1, maxLength: 3 }),
          ),
        },
        entry('$not', tie('filter')),
      ),
      { minLength: 0, maxLength: 2 },
    )
    .map((entries) => Object.fromEntries(entries) as JsonObject),
}));

test('columns, incomplete columns and single documents give the answers of the oracle', (t) => {
  t.diagnostic(`SAGITTA_TEST_SEED=${SEED}`);
  const counts = { rows: 0, matches: 0, byJson: 0 };
  const property = fc.property(
    fc.array(document, { maxLength: 70, size: 'max' }),
    fc.array(filter, { minLength: 1, maxLength: 4 }),
    fc.boolean(),
    fc.nat(),
    (documents, filters, hasGarbage, removalBits) => {
      const texts = documents.map(textOf);
      const parsed = texts.map((text) => JSON.parse(text) as JsonObject);
      const complete = { ...viewOf(texts, { hasGarbage }), json: UNREADABLE };
      const paths = [...complete.columns.keys()];
      const withoutColumns = ['gone', ...paths.filter((_, i) => (removalBits >>> (i % 31)) & 1)];
      const incomplete = viewOf(texts, { hasGarbage, withoutColumns });
      for (const sent of filters) {
        const node = parseFilter(sent, DEFAULT_LIMITS);
        const expected = parsed.map((document) => saysYes(sent, document));
        const answers = {
          documents: parsed.map((document) => matchesDocument(node, document)),
          columns: bitsOf(evaluateFilter(node, complete)),
          incomplete: bitsOf(evaluateFilter(node, incomplete)),
        };
        for (const [by, actual] of Object.entries(answers)) {
          const row = actual.findIndex((answer, i) => answer !== expected[i]);
          assert.equal(actual.length, expected.length);
          assert.equal(row, -1, `${by}: ${textOf(sent)} over row ${row} ${texts[row]}`);
        }
        counts.rows += expected.length;
        counts.matches += expected.filter(Boolean).length;
        counts.byJson += Number(filterPaths(node).some((path) => withoutColumns.includes(path)));
      }
    },
  );
  fc.assert(property, { seed: SEED, numRuns: 1000, includeErrorInReport: true });
  t.diagnostic(JSON.stringify(counts));
  const share = counts.matches / counts.rows;
  assert.ok(share > 0.1 && share < 0.9, 'a filter that always says the same proves nothing');
  assert.ok(counts.byJson > 300, 'too few filters read JSON');
});

/** The JSON of a complete view is never read. */
const UNREADABLE = { offsets: new Int32Array(0), bytes: new Uint8Array(0) };

function bitsOf(bitmap: { readonly length: number; readonly words: Uint32Array }): boolean[] {
  return Array.from({ length: bitmap.length }, (_, row) => hasBit(bitmap, row));
}
