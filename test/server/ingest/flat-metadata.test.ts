// Flat metadata against the text it stands for: a segment must get the same columns from either.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { METADATA_PATH_CHARACTERS_MAX } from '../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../src/common/types.js';
import { utf8ColumnOf } from '../../../src/database/collection/utf8.js';
import { MetadataColumns } from '../../../src/segment/metadata-columns.js';
import {
  FlatMetadataFields,
  FlatMetadataWriter,
} from '../../../src/server/ingest/flat-metadata.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

function flatten(documents: readonly (JsonObject | undefined)[]) {
  const writer = new FlatMetadataWriter(documents.length);
  for (const document of documents) writer.add(document);
  return writer.build();
}

/** The columns of the rows `from..`, made from their text and from their fields. */
function columnsOf(documents: readonly JsonObject[], columnsMax: number, from = 0) {
  const json = utf8ColumnOf(documents.map((document) => JSON.stringify(document)));
  const fromText = new MetadataColumns(columnsMax);
  for (let i = from; i < documents.length; i++) fromText.append(7 + i - from, json, i);
  const fromFields = new MetadataColumns(columnsMax);
  // As after the way from a worker.
  const flat = structuredClone(flatten(documents));
  assert.ok(flat !== null);
  const sliceStart = Math.floor(from / 2);
  const fields = new FlatMetadataFields(flat, sliceStart);
  fromFields.appendFields(7, fields, from - sliceStart, documents.length - from);
  return [fromText, fromFields].map((columns) => ({
    columns: [...columns.view()],
    isComplete: columns.isComplete,
  }));
}

test('fields give a segment the same columns as the text, for any documents', () => {
  const key = fc.oneof(fc.constantFrom('a', 'b', 'a.b', '', '.', 'b.c', '__proto__'), fc.string());
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom(null, true, false, 0, -0, 1e300, '', 'x', 'ä', '\ud800'),
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
      const parsed = JSON.parse(JSON.stringify(list)) as JsonObject[];
      const [fromText, fromFields] = columnsOf(parsed, columnsMax, from);
      assert.deepEqual(fromFields, fromText);
    }),
    { seed, numRuns: 1_000 },
  );
});

test('a path that is too long for a column leaves the columns incomplete', () => {
  const [fromText, fromFields] = columnsOf(
    [{ a: 1, ['x'.repeat(METADATA_PATH_CHARACTERS_MAX + 1)]: 2 }],
    1_000,
  );
  assert.equal(fromFields!.isComplete, false);
  assert.deepEqual(fromFields, fromText);
});

test('rows without metadata have no fields', () => {
  const flat = flatten([undefined, { a: 1 }, undefined])!;
  const found: unknown[] = [];
  new FlatMetadataFields(flat, 0).visit(0, 3, (...field) => found.push(field));
  assert.deepEqual(found, [[1, 'a', 1]]);
});

test('metadata with too many distinct paths stays text', () => {
  const documents = Array.from({ length: 11 }, (_, i) =>
    Object.fromEntries(Array.from({ length: 1_000 }, (_, k) => [`k${i}_${k}`, 1])),
  );
  assert.equal(flatten(documents), null);
  assert.notEqual(flatten(documents.slice(0, 9)), null);
});
