// Writes examples/data/wordnet-sentences.arrow: the senses of wordnet.arrow with sentence vectors, which the built-in
// model makes of `lemma: gloss`, as the unnamed vector, and with the vectors of wordnet.arrow as the named vector `terms`.
// Each is scaled and rounded to int8, which changes cosines by less than a thousandth and the size by a factor of four.
//
//   node scripts/build.mjs tests && node scripts/make-sample-sentences.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Field,
  FixedSizeList,
  Int8,
  makeData,
  makeVector,
  Table,
  tableFromIPC,
  tableToIPC,
} from 'apache-arrow';
import { BuiltinModel } from '../dist/src/server/embedding/builtin-model.js';
import { SENTENCE_DIMENSION } from '../dist/src/server/embedding/sentence-encoder.js';
import { ROOT } from './building/products.mjs';

const DATA = join(ROOT, 'examples', 'data');

const senses = tableFromIPC(readFileSync(join(DATA, 'wordnet.arrow')));
const rows = senses.toArray();
const model = new BuiltinModel();
const texts = rows.map(({ lemma, gloss }) => `${lemma}: ${gloss}`);
const sentences = await model.embed(texts, model.requireInstalled(), new AbortController().signal);
await model.close();

const terms = Float32Array.from(rows.flatMap(({ values }) => [...values]));
const kept = senses.schema.names.filter((name) => name !== 'values');
const table = new Table({
  values: vectorsOf(sentences, SENTENCE_DIMENSION),
  'vectors.terms': vectorsOf(terms, terms.length / rows.length),
  ...Object.fromEntries(kept.map((name) => [name, senses.getChild(name)])),
});
writeFileSync(join(DATA, 'wordnet-sentences.arrow'), tableToIPC(table, 'file'));
console.log(`examples/data/wordnet-sentences.arrow: ${table.numRows} rows`);

/** A column of vectors of int8, whose largest elements are 127. */
function vectorsOf(values, dimension) {
  const data = new Int8Array(values.length);
  for (let start = 0; start < values.length; start += dimension) {
    const row = values.subarray(start, start + dimension);
    const largest = row.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    for (let i = 0; i < dimension; i++) data[start + i] = Math.round((row[i] / largest) * 127);
  }
  return makeVector(
    makeData({
      type: new FixedSizeList(dimension, new Field('item', new Int8(), false)),
      length: values.length / dimension,
      nullCount: 0,
      child: makeData({ type: new Int8(), length: data.length, nullCount: 0, data }),
    }),
  );
}
