import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KIND } from '../../src/common/columns.js';
import type { JsonObject } from '../../src/common/types.js';
import { MetadataColumns } from '../../src/segment/metadata-columns.js';
import { StringDictionary } from '../../src/segment/string-dictionary.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import {
  assertColumnsEqual,
  cellOf,
  Random,
  randomDocument,
  seedOf,
  stringAt,
  utf8Of,
} from './sample.js';

function columnsOf(documents: readonly JsonObject[], columnsMax = 1_000): MetadataColumns {
  const columns = new MetadataColumns(columnsMax);
  const json = utf8Of(documents.map((document) => JSON.stringify(document)));
  for (let row = 0; row < documents.length; row++) columns.append(row, json, row);
  return columns;
}

function viewOf(columns: MetadataColumns, rowCount: number) {
  return { columns: columns.view(), isComplete: columns.isComplete, rowCount };
}

describe('metadata columns', () => {
  it('agree with resolvePath for random documents, before and after sealing', () => {
    const seed = seedOf('metadata columns');
    for (let round = 0; round < 150; round++) {
      const random = new Random(seed + round);
      const documents = Array.from({ length: random.below(60) }, () => randomDocument(random));
      const columnsMax = random.pick([0, 1, 3, 10, 1_000]);
      const columns = columnsOf(documents, columnsMax);
      const view = viewOf(columns, documents.length);
      assert.ok(view.columns.size <= columnsMax);
      assertColumnsEqual(view, documents);
      assertColumnsEqual({ ...view, columns: columns.seal() }, documents);
      assertColumnsEqual(view, documents);
    }
  });

  it('hold all values of a path: a path that was left out never gets a column', () => {
    const columns = columnsOf([{ a: 1 }, { b: 1 }, { c: 1 }, { a: 2, b: 'x' }], 2);
    assert.deepEqual([...columns.view().keys()], ['a', 'b']);
    assert.equal(columns.isComplete, false);
    // The third path was left out in row 2 and must not get a column without that row.
    columns.append(4, utf8Of(['{"c":1,"a":3}']), 0);
    assert.deepEqual([...columns.view().keys()], ['a', 'b']);
    assert.equal(cellOf(columns.view().get('a')!, 4), 3);
  });

  it('are complete while every path has a column', () => {
    assert.equal(columnsOf([{ a: 1 }, { b: 1 }], 2).isComplete, true);
    assert.equal(columnsOf([{}, {}], 0).isComplete, true);
  });

  it('leave long paths to the JSON', () => {
    const columns = columnsOf([{ ['k'.repeat(256)]: 1, ['k'.repeat(257)]: 1 }]);
    assert.deepEqual(
      [...columns.view().keys()].map((path) => path.length),
      [256],
    );
    assert.equal(columns.isComplete, false);
  });

  it('use the last of several chains of keys for one path', () => {
    // The array of the inner object is visited first and must leave no elements behind.
    const documents = [
      { a: { b: ['gone', 1] }, 'a.b': 'x' },
      { a: { b: 'gone' }, 'a.b': [1, 2] },
      { a: { b: ['gone', 'gone'] }, 'a.b': ['y'] },
      { 'a.b': [3] },
    ];
    const columns = columnsOf(documents);
    assertColumnsEqual(viewOf(columns, 4), documents);
    assert.equal(columns.view().get('a.b')!.items!.elements.kinds.length, 4);
  });

  it('keep only the kind of arrays and objects inside arrays', () => {
    const column = columnsOf([{ a: [[1], { b: 1 }, 2] }])
      .view()
      .get('a')!;
    assert.deepEqual([...column.items!.elements.kinds], [KIND.array, KIND.object, KIND.number]);
    assert.equal(column.items!.elements.items, null);
  });

  it('do not change a view when rows are added', () => {
    const seed = seedOf('metadata views');
    const random = new Random(seed);
    const documents = Array.from({ length: 300 }, () => randomDocument(random));
    const columns = new MetadataColumns(1_000);
    const json = utf8Of(documents.map((document) => JSON.stringify(document)));
    const views = documents.map((_, row) => {
      const view = viewOf(columns, row);
      columns.append(row, json, row);
      return view;
    });
    for (const [row, view] of views.entries()) {
      if (row % (IS_NIGHTLY ? 7 : 23) === 0) assertColumnsEqual(view, documents.slice(0, row));
    }
  });

  it('return the same column object until it changes', () => {
    const columns = columnsOf([{ a: 1, b: 1 }]);
    const before = columns.view();
    columns.append(1, utf8Of(['{"a":2}']), 0);
    const after = columns.view();
    assert.equal(after.get('b'), before.get('b'));
    assert.notEqual(after.get('a'), before.get('a'));
  });

  it('copy rows of other columns to the same cells that their JSON gives', () => {
    const seed = seedOf('copied metadata');
    for (let round = 0; round < 100; round++) {
      const random = new Random(seed + round);
      const target = new MetadataColumns(random.pick([2, 1_000]));
      const all: JsonObject[] = [];
      for (let part = 0; part < 3; part++) {
        const documents = Array.from({ length: random.below(20) }, () => randomDocument(random));
        const rows = [...documents.keys()].filter(() => random.next() < 0.6);
        target.copyRows(columnsOf(documents).seal(), Uint32Array.from(rows), all.length);
        all.push(...rows.map((row) => documents[row]!));
      }
      assertColumnsEqual(viewOf(target, all.length), all);
      assertColumnsEqual({ ...viewOf(target, all.length), columns: target.seal() }, all);
    }
  });
});

describe('a string dictionary', () => {
  it('finds strings when they exceed one Map', () => {
    const dictionary = new StringDictionary(10);
    const texts = Array.from({ length: 95 }, (_, i) => `text ${i}`);
    const codes = texts.map((text) => dictionary.codeOf(text));
    assert.deepEqual(codes, [...texts.keys()]);
    assert.deepEqual(
      texts.map((text) => dictionary.codeOf(text)),
      codes,
    );
    dictionary.seal();
    assert.equal(dictionary.count, 95);
    assert.equal(stringAt(dictionary.view(), 94), 'text 94');
  });
});
