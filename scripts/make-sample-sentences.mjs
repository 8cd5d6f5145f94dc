// Writes examples/data/wordnet-sentences.arrow: the senses of wordnet.arrow with sentence vectors, which the built-in
// model makes of `lemma: gloss`, as the unnamed vector, and with the vectors of wordnet.arrow as the named vector `terms`.
// Both are rounded to float16, which changes no score by more than a thousandth.
//
//   node scripts/build.mjs tests && node scripts/make-sample-sentences.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Field,
  FixedSizeList,
  Float16,
  makeData,
  makeVector,
  Table,
  tableFromIPC,
  tableToIPC,
} from 'apache-arrow';
import { ELEMENTS, roundElements } from '../dist/src/common/elements.js';
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

/** A column of vectors of float16. */
function vectorsOf(values, dimension) {
  roundElements('float16', values, 0, values.length);
  const data = ELEMENTS.float16.pack(values);
  return makeVector(
    makeData({
      type: new FixedSizeList(dimension, new Field('item', new Float16(), false)),
      length: values.length / dimension,
      nullCount: 0,
      child: makeData({ type: new Float16(), length: data.length, nullCount: 0, data }),
    }),
  );
}
