// Parsed metadata must give a segment the same columns as its text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseExactJson, stringifyExactJson } from '../../../src/common/exact-json.js';
import { METADATA_PATH_CHARACTERS_MAX } from '../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../src/common/types.js';

import { MetadataColumns } from '../../../src/segment/metadata-columns.js';
import { fieldsOf, packMetadata } from '../../../src/server/bodies/parsed-metadata.js';
import { textColumn } from '../../formats/arrow/streams.js';
import { IS_NIGHTLY } from '../../support/nightly.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

/** The metadata of a large batch, packed in a worker, and of a small one, packed on the event loop. */
const FORMS = [
  { kind: 'flat', byteCount: 1_000_000 },
  { kind: 'documents', byteCount: 1_000 },
] as const;

/** The columns of the rows `from..`, built from their text and from their fields. */
function columnsOf(documents: readonly JsonObject[], columnsMax: number, from = 0) {
  const json = textColumn(documents.map((document) => stringifyExactJson(document)));
  const fromText = new MetadataColumns(columnsMax);
  for (let i = from; i < documents.length; i++) fromText.append(7 + i - from, json, i);
  const fromFields = FORMS.map(({ kind, byteCount }) => {
    const columns = new MetadataColumns(columnsMax);
    const packed = packMetadata(documents, byteCount);
    assert.equal(packed.kind, kind);
    const sliceStart = Math.floor(from / 2);
    const fields = fieldsOf(kind === 'flat' ? structuredClone(packed) : packed, sliceStart)!;
    columns.appendFields(7, fields, from - sliceStart, documents.length - from);
    return columns;
  });
  return [fromText, ...fromFields].map((columns) => ({
    columns: [...columns.view()],
    isComplete: columns.isComplete,
  }));
}

test('fields give a segment the same columns as the text, for any documents', () => {
  const key = fc.oneof(fc.constantFrom('a', 'b', 'a.b', '', '.', 'b.c', '__proto__'), fc.string());
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom(
        null,
        true,
        false,
        0,
        -0,
        1e300,
        2n ** 63n + 1n,
        -(2n ** 53n) - 1n,
        '',
        'x',
        'ä',
        '\ud800',
      ),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.string({ unit: 'binary' }),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    ),
  }));
  const documents = fc.array(fc.dictionary(key, value, { maxKeys: 5 }), { maxLength: 8 });
  fc.assert(
    fc.property(documents, fc.constantFrom(2, 1_000), fc.nat(8), (list, columnsMax, skipped) => {
      const from = Math.min(skipped, list.length);
      const parsed = parseExactJson(stringifyExactJson(list)) as unknown as JsonObject[];
      const [fromText, fromFlat, fromDocuments] = columnsOf(parsed, columnsMax, from);
      assert.deepEqual(fromFlat, fromText);
      assert.deepEqual(fromDocuments, fromText);
    }),
    { seed, numRuns: IS_NIGHTLY ? 1_000 : 300 },
  );
});

test('a path that is too long for a column leaves the columns incomplete', () => {
  const [fromText, fromFlat, fromDocuments] = columnsOf(
    [{ a: 1, ['x'.repeat(METADATA_PATH_CHARACTERS_MAX + 1)]: 2 }],
    1_000,
  );
  assert.equal(fromText!.isComplete, false);
  assert.deepEqual(fromFlat, fromText);
  assert.deepEqual(fromDocuments, fromText);
});

test('rows without metadata have no fields', () => {
  for (const { byteCount } of FORMS) {
    const packed = packMetadata([undefined, { a: 1 }, undefined], byteCount);
    const found: unknown[] = [];
    fieldsOf(packed, 0)!.visit(0, 3, (...field) => found.push(field));
    assert.deepEqual(found, [[1, 'a', 1]]);
  }
});

test('metadata with too many distinct paths stays text', () => {
  const documents = Array.from({ length: 11 }, (_, i) =>
    Object.fromEntries(Array.from({ length: 1_000 }, (_, k) => [`k${i}_${k}`, 1])),
  );
  const [{ byteCount }] = FORMS;
  assert.equal(packMetadata(documents, byteCount).kind, 'text');
  assert.equal(packMetadata(documents.slice(0, 9), byteCount).kind, 'flat');
});

test('metadata whose fields take several times the memory of their text stays text', () => {
  const documents = [{ a: Array.from({ length: 100_000 }, () => 1) }];
  const { length } = stringifyExactJson(documents);
  assert.equal(packMetadata(documents, length).kind, 'text');
  const [wide] = [{ a: Array.from({ length: 10_000 }, (_, i) => `element number ${i}`) }];
  assert.equal(packMetadata([wide], stringifyExactJson(wide).length).kind, 'flat');
});
