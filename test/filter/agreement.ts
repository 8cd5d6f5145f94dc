// Random filters over random documents: columns, incomplete columns, single documents and the oracle must give the
// same answer for every row. Callers choose how many, and check that the answers are varied enough to be meaningful.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { hasBit } from '../../src/common/bitmap.js';
import { parseExactJson } from '../../src/common/exact-json.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import type { Json, JsonObject } from '../../src/common/types.js';
import { evaluateFilter, readsJson } from '../../src/filter/evaluate.js';
import { filterPaths } from '../../src/filter/filter-node.js';
import { matchesDocument } from '../../src/filter/operators.js';
import { parseFilter } from '../../src/filter/parse.js';
import { saysYes } from './oracle.js';
import { idOf, textOf, viewOf } from './view-of.js';

const SEED = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000);

const NUMBERS = [0, -0, 1, -1, 1.5, 10, 2 ** 53, -1e300, 5e-324, Number.MAX_VALUE];
/** Integers that float64 cannot represent, with the neighbouring float64 values. */
// biome-ignore format: a table
const LONG_INTEGERS = [
  2n ** 53n + 1n, 1768907725507217522n, 1768907725507217523n,
  Number(1768907725507217408n), Number(1768907725507217664n),
  -(2n ** 63n) + 1n, 2n ** 64n - 1n, 2 ** 64,
];
// biome-ignore format: a table
const STRINGS = [
  '', 'a', 'ab', 'b', '1', '10', 'true', 'null', '2026-01-31', '\u0000', '\u007f', 'é', 'z', '\ue000',
  '\ufffd', '\uffff', '😀', '😀a', '𐀀', 'x'.repeat(300),
  `${'x'.repeat(299)}y`, 'A', 'aB', 'É', 'ſs', 'SS', 'K', 'k', 'Σς', 'Ⱥ', 'ⱥ', 'ab%', 'a_\\', 'b\na',
  '2026-01-31T00:00:00Z', '2026-01-30T23:00:00-01:00', '2026-01-31t00:00:00.000000001z',
  '2024-02-29T12:00:00.5', '2026-02-29', '1969-12-31 23:59:60Z', '2026-01-31T24:00:00Z',
];
/** What users search for. */
const PREFIXES = ['', 'a', 'A', 'x', 'é', '2026-01', '😀', 'σ'];
// biome-ignore format: a table
const LIKE_PATTERNS = [
  '', '%', '_', 'a%', '%a', '%b%', '_b', 'a_', '__', '%_', 'a\\%%', '%\\%', '%\\_\\\\', 'x%y', '2026-%Z', '%é', '😀_',
];
/** Patterns that mean the same in RE2 and JavaScript. */
// biome-ignore format: a table
const REGEXES = [
  '', 'a', '^a', 'b$', '^.$', 'a|b', '^[^a]+$', '\\d{4}-\\d\\d', 'x{5,}y', '(a|b)\\n', '\\p{L}', 'é', '[a-c]b?$',
];
// biome-ignore format: a table
const DATES = [
  '2026-01-31', '2026-01-31T00:00:00.000000001Z', '2024-02-29T13:00:00.5+01:00', '1970-01-01', '0000-01-01',
];
const PLACES = [
  { lat: 0, lon: 0 },
  { lat: 52.5, lon: 13.4 },
  { lat: -33.9, lon: 151.2 },
  { lat: 10.25, lon: 179.5 },
  { lat: -10.5, lon: -179.25 },
  { lat: 90, lon: 0 },
  { lat: 91, lon: 0 },
  { lat: 1, lon: 181 },
];
const KEYS = ['a', 'b', 'c', 'a.b', 'b.c', '', '__proto__', 'constructor', '😀', 'a.lat', 'lon'];
// biome-ignore format: a table
const PATHS = [
  ...KEYS, 'a.b.c', 'a.a', 'a.', '.', '.a', '__proto__.a', 'a.__proto__', 'constructor.name', 'z',
];

const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(...NUMBERS, ...LONG_INTEGERS),
  fc.constantFrom<Json>(...STRINGS),
  fc.boolean(),
);
const scalarOrNull = fc.oneof({ weight: 5, arbitrary: scalar }, fc.constant(null));
const ordered = fc.constantFrom<Json>(...NUMBERS, ...LONG_INTEGERS, ...STRINGS);

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
    { weight: 1, arbitrary: fc.constantFrom<Json>(...PLACES) },
  ),
}));
const document = objectOf(fc.constantFrom(...KEYS), documentValue, 6);

const list = (value: fc.Arbitrary<Json>) => fc.array(value, { maxLength: 6 });
const entry = (name: string, operand: fc.Arbitrary<Json>) => fc.tuple(fc.constant(name), operand);

const COMPARISONS = ['$eq', '$gt', '$gte', '$lt', '$lte'];
const boundsOf = (bound: fc.Arbitrary<Json>) =>
  fc.oneof(
    bound,
    fc.dictionary(fc.constantFrom(...COMPARISONS), bound, { minKeys: 1, maxKeys: 2 }),
  );
const types = fc.constantFrom('null', 'boolean', 'number', 'string', 'array', 'object');

const latitude = fc.integer({ min: -90, max: 90 });
const longitude = fc.integer({ min: -180, max: 180 });
// Coordinates end in .375, so that no point lies on an edge, where rounding would decide.
const place = fc.record({
  lat: latitude.map((degrees) => Math.min(90, degrees + 0.375)),
  lon: longitude.map((degrees) => Math.min(180, degrees + 0.375)),
});
const circle = fc.record({
  center: place,
  radius_meters: fc.constantFrom(0, 1e3, 1e6, 7.5e6, 15e6, 3e7),
});
const box = fc.tuple(place, place).map(([a, b]) => ({
  top_left: { lat: Math.max(a.lat, b.lat), lon: a.lon },
  bottom_right: { lat: Math.min(a.lat, b.lat), lon: b.lon },
}));
/** Rings around a point, at ascending angles. */
const ring = fc
  .tuple(place, fc.integer({ min: 20, max: 80 }), fc.integer({ min: 3, max: 7 }))
  .map(([center, radius, count]) =>
    Array.from({ length: count }, (_, i) => {
      const angle = (2 * Math.PI * i) / count + 0.1;
      const lon = center.lon + radius * Math.cos(angle);
      return {
        lat: Math.max(-90, Math.min(90, center.lat + radius * Math.sin(angle))),
        lon: lon > 180 ? lon - 360 : lon < -180 ? lon + 360 : lon,
      };
    }),
  );
const polygon = fc.oneof(
  fc.record({ exterior: ring }),
  fc.record({ exterior: ring, interiors: fc.array(ring, { maxLength: 2 }) }),
);

const ID_PARTS = ['', 'd', 'doc/', 'DOC/1', 'é/', '1', '/2', 'doc/30', 'é/5'];

// biome-ignore format: a list
const STRING_OPERATORS = [
  '$eq', '$ne', '$in', '$nin', '$gt', '$gte', '$lt', '$lte', '$prefix', '$suffix', '$like', '$regex',
  '$contains', '$contains_any', '$contains_all', '$contains_only',
];

/** An object of operators, sometimes with `$case` if one of them compares strings. */
const operatorsOf = (operator: fc.Arbitrary<[string, Json]>, countMax: number) =>
  fc.array(operator, { minLength: 1, maxLength: countMax }).chain((entries) => {
    const operators = Object.fromEntries(entries) as JsonObject;
    const mayIgnoreCase = Object.keys(operators).some((name) => STRING_OPERATORS.includes(name));
    return mayIgnoreCase
      ? fc.constantFrom<JsonObject>(operators, { ...operators, $case: 'insensitive' })
      : fc.constant(operators);
  });

const idPart = fc.constantFrom<Json>(...ID_PARTS);
const idOperators = operatorsOf(
  fc.oneof(
    fc.tuple(fc.constantFrom('$eq', '$ne', '$gt', '$lte', '$prefix', '$suffix'), idPart),
    fc.tuple(fc.constantFrom('$like', '$regex'), idPart),
    fc.tuple(fc.constantFrom('$in', '$nin'), list(idPart)),
  ),
  2,
);

const { filter, operators } = fc.letrec<{
  filter: JsonObject;
  operators: JsonObject;
  operator: [string, Json];
}>((tie) => ({
  operator: fc.oneof(
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('$eq', '$ne'), scalarOrNull) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('$in', '$nin'), list(scalarOrNull)) },
    { weight: 4, arbitrary: fc.tuple(fc.constantFrom('$gt', '$gte', '$lt', '$lte'), ordered) },
    entry('$exists', fc.boolean()),
    entry('$contains', scalar),
    {
      weight: 2,
      arbitrary: fc.tuple(
        fc.constantFrom('$contains_any', '$contains_all', '$contains_only'),
        list(scalarOrNull),
      ),
    },
    fc.tuple(fc.constantFrom('$prefix', '$suffix'), fc.constantFrom<Json>(...PREFIXES)),
    entry('$like', fc.constantFrom<Json>(...LIKE_PATTERNS)),
    entry('$regex', fc.constantFrom<Json>(...REGEXES)),
    entry('$date', boundsOf(fc.constantFrom<Json>(...DATES))),
    entry('$size', boundsOf(fc.nat({ max: 4 }))),
    entry('$type', fc.oneof(types, fc.array(types, { minLength: 1, maxLength: 3 }))),
    entry('$elem_match', fc.oneof(tie('operators'), tie('filter')).filter(isElementFilter)),
    entry('$geo_radius', circle),
    entry('$geo_box', box),
    entry('$geo_polygon', polygon),
    entry('$not', tie('operators')),
  ),
  operators: operatorsOf(tie('operator') as fc.Arbitrary<[string, Json]>, 2),
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
        entry('$id', idOperators),
      ),
      { minLength: 0, maxLength: 2 },
    )
    .map((entries) => Object.fromEntries(entries) as JsonObject),
}));

/** Whether the filter is not empty and has no conditions on the id, which elements lack. */
function isElementFilter(operand: JsonObject): boolean {
  return Object.keys(operand).length > 0 && !textOf(operand).includes('"$id"');
}

export interface Counts {
  rows: number;
  matches: number;
  /** Filters that read the JSON of an incomplete view. */
  byJson: number;
}

/**
 * Compares all answers for every filter and document.
 * @param options `removalBits` selects the columns to remove.
 */
function compareAnswers(
  documents: readonly JsonObject[],
  filters: readonly JsonObject[],
  { hasGarbage, removalBits }: { hasGarbage: boolean; removalBits: number },
  count: (filter: JsonObject, answers: readonly boolean[], isByJson: boolean) => void,
): void {
  const texts = documents.map(textOf);
  const parsed = texts.map((text) => parseExactJson(text) as JsonObject);
  const complete = viewOf(texts, { hasGarbage });
  const withoutJson = { ...complete, json: UNREADABLE };
  const paths = [...complete.columns.keys()];
  const withoutColumns = ['gone', ...paths.filter((_, i) => (removalBits >>> (i % 31)) & 1)];
  const incomplete = viewOf(texts, { hasGarbage, withoutColumns });
  for (const sent of filters) {
    const node = parseFilter(sent, { limits: DEFAULT_LIMITS, hasText: true });
    const expected = parsed.map((document, row) => saysYes(sent, document, idOf(row)));
    // A document has no id.
    const readsIds = textOf(sent).includes('"$id"');
    const answers = {
      documents: readsIds ? expected : parsed.map((document) => matchesDocument(node, document)),
      columns: bitsOf(evaluateFilter(node, readsJson(node, complete) ? complete : withoutJson)),
      incomplete: bitsOf(evaluateFilter(node, incomplete)),
    };
    for (const [by, actual] of Object.entries(answers)) {
      const row = actual.findIndex((answer, i) => answer !== expected[i]);
      assert.equal(actual.length, expected.length);
      assert.equal(row, -1, `${by}: ${textOf(sent)} over row ${row} ${texts[row]}`);
    }
    count(
      sent,
      expected,
      filterPaths(node).some((path) => withoutColumns.includes(path)),
    );
  }
}

export function compareRandomFilters(t: TestContext, numRuns: number): Counts {
  t.diagnostic(`SAGITTA_TEST_SEED=${SEED}`);
  const counts: Counts = { rows: 0, matches: 0, byJson: 0 };
  const property = fc.property(
    fc.array(document, { maxLength: 70, size: 'max' }),
    fc.array(filter, { minLength: 1, maxLength: 4 }),
    fc.boolean(),
    fc.nat(),
    (documents, filters, hasGarbage, removalBits) => {
      compareAnswers(documents, filters, { hasGarbage, removalBits }, (_, answers, isByJson) => {
        counts.rows += answers.length;
        counts.matches += answers.filter(Boolean).length;
        counts.byJson += Number(isByJson);
      });
    },
  );
  fc.assert(property, {
    seed: SEED,
    numRuns,
    includeErrorInReport: true,
  });
  t.diagnostic(JSON.stringify(counts));
  return counts;
}

const text = fc.constantFrom<Json>(...STRINGS);
const element = fc.oneof(text, scalarOrNull, place, fc.constant<Json>([]), fc.constant<Json>({}));
/** Documents with one path whose values suit the operators. */
const focusedDocument = fc
  .oneof(
    { weight: 3, arbitrary: text },
    { weight: 2, arbitrary: place },
    { weight: 2, arbitrary: fc.array(element, { maxLength: 4 }) },
    { weight: 1, arbitrary: documentValue },
  )
  .map((a): JsonObject => ({ a }));
const focusedFilter = operators.map((operators): JsonObject => ({ a: operators }));

/** Answers by operator. */
export type SeenBy = ReadonlyMap<string, { readonly matches: number; readonly misses: number }>;

export function compareOperators(t: TestContext, numRuns: number): SeenBy {
  t.diagnostic(`SAGITTA_TEST_SEED=${SEED}`);
  const seenBy = new Map<string, { matches: number; misses: number }>();
  const property = fc.property(
    fc.array(focusedDocument, { minLength: 1, maxLength: 70, size: 'max' }),
    fc.array(focusedFilter, { minLength: 4, maxLength: 16 }),
    fc.boolean(),
    fc.nat(),
    (documents, filters, hasGarbage, removalBits) => {
      compareAnswers(documents, filters, { hasGarbage, removalBits }, ({ a }, answers) => {
        const names = Object.keys(a as JsonObject).filter((name) => name !== '$case');
        // Answers of several operators together say little about each of them.
        for (const operator of names.length === 1 ? Object.keys(a as JsonObject) : []) {
          const seen = seenBy.get(operator) ?? { matches: 0, misses: 0 };
          seen.matches += answers.filter(Boolean).length;
          seen.misses += answers.filter((answer) => !answer).length;
          seenBy.set(operator, seen);
        }
      });
    },
  );
  fc.assert(property, { seed: SEED, numRuns, includeErrorInReport: true });
  t.diagnostic(JSON.stringify(Object.fromEntries(seenBy)));
  return seenBy;
}

/** The JSON of a complete view is read only for the fields of elements. */
const UNREADABLE = { offsets: new Int32Array(0), bytes: new Uint8Array(0) };

function bitsOf(bitmap: { readonly length: number; readonly words: Uint32Array }): boolean[] {
  return Array.from({ length: bitmap.length }, (_, row) => hasBit(bitmap, row));
}
